//! Sets of labels that samples share: those of a device or a row of processes are kept and escaped
//! once, however many samples have them.

use std::borrow::Cow;
use std::collections::HashMap;

use telltale_wire::exposition::Labels;

/// A set of labels. The default one is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct SetId(u32);

/// A label and its value.
pub(super) type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// All sets.
#[derive(Debug)]
pub(super) struct LabelSets<'a> {
    sets: Vec<(Vec<Pair<'a>>, Labels)>,
    by_text: HashMap<String, SetId>,
}

impl Default for LabelSets<'_> {
    fn default() -> Self {
        Self { sets: vec![(Vec::new(), Labels::default())], by_text: HashMap::new() }
    }
}

impl<'a> LabelSets<'a> {
    /// The set of these labels: the same one for the same labels. Those without a value are left
    /// out.
    ///
    /// # Panics
    /// If a label's name is none.
    pub(super) fn of(&mut self, pairs: impl IntoIterator<Item = Pair<'a>>) -> SetId {
        let pairs: Vec<Pair<'a>> =
            pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let written = Labels::new(pairs.iter().map(|(name, value)| (&**name, &**value)));
        let written = written.expect("names from outside have been checked");
        if written.is_empty() {
            return SetId::default();
        }
        if let Some(known) = self.by_text.get(written.as_str()) {
            return *known;
        }
        let id = SetId(u32::try_from(self.sets.len()).expect("samples are bounded"));
        self.by_text.insert(written.as_str().to_owned(), id);
        self.sets.push((pairs, written));
        id
    }

    /// A set of one label.
    pub(super) fn one(&mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> SetId {
        self.of([(Cow::Borrowed(name), value.into())])
    }

    pub(super) fn written(&self, set: SetId) -> &Labels {
        &self.entry(set).1
    }

    pub(super) fn pairs(&self, set: SetId) -> impl Iterator<Item = (&str, &str)> {
        self.entry(set).0.iter().map(|(name, value)| (&**name, &**value))
    }

    fn entry(&self, set: SetId) -> &(Vec<Pair<'a>>, Labels) {
        let place = usize::try_from(set.0).expect("a set's number fits");
        &self.sets[place]
    }
}
