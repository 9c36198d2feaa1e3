//! Samples as text, in one piece or in parts that follow each other: thousands of series are megabytes
//! of text, of which no client needs more at a time than what a connection takes.

use telltale_wire::exposition::{Buckets, Encoder, FamilyEncoder, Format, Labels};

use super::{BucketCounts, Family, Sample, SampleValue, Samples};

/// How far the samples are written.
#[derive(Debug)]
pub struct Writing<'s, 'a> {
    samples: &'s Samples<'a>,
    format: Format,
    /// The next family, and its next sample.
    family: usize,
    sample: usize,
    is_over: bool,
}

// === impl Writing ===

impl<'s, 'a> Writing<'s, 'a> {
    /// Nothing is written yet.
    pub fn new(samples: &'s Samples<'a>, format: Format) -> Self {
        Self { samples, format, family: 0, sample: 0, is_over: false }
    }

    /// Writes on into `text`, whose contents go and whose room is used again, until it has `enough`
    /// bytes and one sample more at most. Gives whether there is more to write.
    pub fn next_part(&mut self, enough: usize, text: &mut String) -> bool {
        let mut encoder = Encoder::new(self.format, text);
        while let Some(family) = self.samples.families.get(self.family) {
            if !family.samples.is_empty() && !self.write(family, enough, &mut encoder) {
                return true;
            }
            (self.family, self.sample) = (self.family + 1, 0);
        }
        if !std::mem::replace(&mut self.is_over, true) {
            encoder.finish();
        }
        false
    }

    /// Writes on with a family. Gives whether it is whole.
    fn write(&mut self, family: &Family<'a>, enough: usize, encoder: &mut Encoder<'_>) -> bool {
        let head = family.head();
        let mut lines = match self.sample {
            0 => encoder.family(&head),
            _ => encoder.rest_of_family(&head),
        };
        for sample in &family.samples[self.sample..] {
            if lines.text_bytes() >= enough {
                return false;
            }
            self.line(family, sample, &mut lines);
            self.sample += 1;
        }
        true
    }

    fn line(&self, family: &Family<'a>, sample: &Sample<'a>, lines: &mut FamilyEncoder<'_>) {
        let labels = sample.sets.map(|set| self.samples.sets.written(set));
        let labels: [&Labels; 3] = labels;
        match &sample.value {
            SampleValue::Number(number) => lines.sample(&labels, *number, family.created),
            SampleValue::Buckets(counted) => {
                let BucketCounts { bounds, counts, sum } = &**counted;
                let buckets = Buckets { bounds, counts, sum: sum.value() };
                lines.histogram(&labels, buckets, family.created);
            }
        }
    }
}
