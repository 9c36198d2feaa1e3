//! How a described program is written into a key: once, for the nested form and for the flat one.
//! Values of dispatch words and addresses are not written; their number and place are.
//!
//! Every struct is taken apart field by field, so a new field does not compile until it has a rule.

use std::cmp::Ordering;

use crate::arguments::ArgumentRun;
use crate::cores::{CoreRange, CoreRanges};
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::circular_buffer::{
    CircularBufferDescriptor, CircularBufferFormat, Placement,
};
use crate::descriptor::kernel::{KernelConfig, KernelDescriptor, KernelSource, OptimisationLevel};
use crate::descriptor::semaphore::SemaphoreDescriptor;
use crate::key::{Key, KeyEncoder, KeyKind, ProgramKey};
use crate::operand::Tile;

/// A kernel without its dispatch words, borrowed from wherever it is. `T` is a text.
#[derive(Debug, Clone, Copy)]
pub struct KernelHead<'a, T> {
    /// As [`KernelDescriptor::name`].
    pub name: &'a str,
    /// As [`KernelDescriptor::source`].
    pub source: &'a KernelSource,
    /// As [`KernelDescriptor::core_ranges`].
    pub core_ranges: &'a CoreRanges,
    /// As [`KernelDescriptor::compile_time_arguments`].
    pub compile_time_arguments: &'a [u32],
    /// As [`KernelDescriptor::named_compile_time_arguments`].
    pub named_compile_time_arguments: &'a [(T, u32)],
    /// As [`KernelDescriptor::defines`].
    pub defines: &'a [(T, T)],
    /// As [`KernelDescriptor::optimisation_level`].
    pub optimisation_level: Option<OptimisationLevel>,
    /// As [`KernelDescriptor::config`].
    pub config: &'a KernelConfig,
}

impl<A: Copy> ProgramDescriptor<A> {
    /// The key of this program, written into `encoder`'s buffer.
    pub fn key<'a>(&self, encoder: &'a mut KeyEncoder) -> Key<'a> {
        let Self { kernels, circular_buffers, semaphores } = self;
        encoder.begin(KeyKind::Program);
        encoder.length(kernels.len());
        for kernel in kernels {
            put_kernel(encoder, kernel);
        }
        encoder.length(circular_buffers.len());
        for buffer in circular_buffers {
            put_circular_buffer(encoder, buffer);
        }
        put_semaphores(encoder, semaphores);
        encoder.key()
    }
}

fn put_kernel<A: Copy>(encoder: &mut KeyEncoder, kernel: &KernelDescriptor<A>) {
    let KernelDescriptor {
        name,
        source,
        core_ranges,
        compile_time_arguments,
        named_compile_time_arguments,
        defines,
        runtime_arguments,
        common_runtime_arguments,
        optimisation_level,
        config,
    } = kernel;
    let head = KernelHead {
        name,
        source,
        core_ranges,
        compile_time_arguments,
        named_compile_time_arguments,
        defines,
        optimisation_level: *optimisation_level,
        config,
    };
    put_kernel_head(encoder, &head, common_runtime_arguments.len());
    put_runs(encoder, runtime_arguments.runs());
}

/// Writes everything of a kernel but its runs, which come last.
pub(crate) fn put_kernel_head<T: AsRef<str>>(
    encoder: &mut KeyEncoder,
    head: &KernelHead<'_, T>,
    common_words: usize,
) {
    let KernelHead {
        name,
        source,
        core_ranges,
        compile_time_arguments,
        named_compile_time_arguments,
        defines,
        optimisation_level,
        config,
    } = head;
    encoder.text(name);
    let (tag, text) = match source {
        KernelSource::Path(path) => (0, path),
        KernelSource::Text(text) => (1, text),
    };
    encoder.put([tag, optimisation_level.map_or(0, |level| level as u8 + 1)]);
    encoder.text(text);
    config.encode_value(encoder);
    put_core_ranges(encoder, core_ranges);
    encoder.length(compile_time_arguments.len());
    encoder.words(compile_time_arguments);
    put_sorted(
        encoder,
        named_compile_time_arguments,
        |one, two| compare_texts(one.0.as_ref(), two.0.as_ref()),
        |encoder, (name, value)| {
            encoder.text(name.as_ref());
            encoder.put_u32(*value);
        },
    );
    put_sorted(
        encoder,
        defines,
        |one, two| compare_texts(one.0.as_ref(), two.0.as_ref()),
        |encoder, (name, value)| {
            encoder.two_texts(name.as_ref(), value.as_ref());
        },
    );
    encoder.length(common_words);
}

#[inline]
pub(crate) fn put_runs(encoder: &mut KeyEncoder, runs: &[ArgumentRun]) {
    encoder.length(runs.len());
    for ArgumentRun { cores, words_per_core } in runs {
        encoder.put_packed([(packed_range(cores), 8), (u128::from(*words_per_core), 4)]);
    }
}

#[inline]
pub(crate) fn put_circular_buffer<A>(
    encoder: &mut KeyEncoder,
    buffer: &CircularBufferDescriptor<A>,
) {
    let CircularBufferDescriptor {
        total_bytes,
        core_ranges,
        formats,
        remote_formats,
        placement,
        address_offset_bytes,
    } = buffer;
    let kind = match placement {
        Placement::Own => 0u8,
        Placement::OnBuffer { address: _ } => 1,
        Placement::Remote { global_circular_buffer: _ } => 2,
    };
    let fixed =
        u128::from(*total_bytes) | u128::from(*address_offset_bytes) << 32 | u128::from(kind) << 64;
    if let ([range], [format], []) = (core_ranges.ranges(), &formats[..], &remote_formats[..]) {
        // Nearly always; the same bytes as below, written at once.
        let (range, format) = (packed_range(range), packed_format(format));
        encoder.put_packed([(fixed, 9), (1, 4), (range, 8), (1, 4), (format, 12), (0, 4)]);
        return;
    }
    encoder.put_packed([(fixed, 9)]);
    put_core_ranges(encoder, core_ranges);
    put_formats(encoder, formats);
    put_formats(encoder, remote_formats);
}

fn put_formats(encoder: &mut KeyEncoder, formats: &[CircularBufferFormat]) {
    put_sorted(
        encoder,
        formats,
        |one, two| one.buffer_index.cmp(&two.buffer_index),
        |encoder, format| encoder.put_packed([(packed_format(format), 12)]),
    );
}

#[inline]
fn packed_format(format: &CircularBufferFormat) -> u128 {
    let CircularBufferFormat { buffer_index, data_format, page_bytes, tile } = *format;
    let packed = u128::from(buffer_index)
        | u128::from(data_format as u8) << 8
        | u128::from(page_bytes) << 16;
    let Some(Tile { height, width, transposed }) = tile else { return packed };
    packed
        | 1 << 48
        | u128::from(height) << 56
        | u128::from(width) << 72
        | u128::from(transposed) << 88
}

pub(crate) fn put_semaphores(encoder: &mut KeyEncoder, semaphores: &[SemaphoreDescriptor]) {
    put_sorted(encoder, semaphores, compare_semaphores, |encoder, semaphore| {
        let SemaphoreDescriptor { id, core_type, core_ranges, initial_value } = semaphore;
        encoder.put_packed([
            (u128::from(*id), 4),
            (u128::from(*initial_value), 4),
            (u128::from(*core_type as u8), 1),
        ]);
        put_core_ranges(encoder, core_ranges);
    });
}

/// Semaphores with the same id are distinguished by the first of their cores: valid ones share none.
fn compare_semaphores(one: &SemaphoreDescriptor, two: &SemaphoreDescriptor) -> Ordering {
    let first_core = |semaphore: &SemaphoreDescriptor| {
        semaphore.core_ranges.ranges().first().map(CoreRange::start)
    };
    (one.id.cmp(&two.id))
        .then_with(|| one.core_type.cmp(&two.core_type))
        .then_with(|| first_core(one).cmp(&first_core(two)))
}

#[inline]
fn put_core_ranges(encoder: &mut KeyEncoder, cores: &CoreRanges) {
    if let [range] = cores.ranges() {
        // Nearly always; the same bytes as below, written at once.
        encoder.put_packed([(1, 4), (packed_range(range), 8)]);
        return;
    }
    encoder.length(cores.ranges().len());
    for range in cores.ranges() {
        encoder.put_packed([(packed_range(range), 8)]);
    }
}

#[inline]
fn packed_range(range: &CoreRange) -> u128 {
    let (start, end) = (range.start(), range.end());
    let [left, top, right, bottom] = [start.x, start.y, end.x, end.y].map(u128::from);
    left | top << 16 | right << 32 | bottom << 48
}

/// Writes a list whose order does not matter in one order. Elements that compare equal keep
/// theirs: they are a mistake that validation finds, and which of them comes first may matter.
fn put_sorted<T>(
    encoder: &mut KeyEncoder,
    elements: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
    put: impl Fn(&mut KeyEncoder, &T),
) {
    encoder.length(elements.len());
    if elements.is_sorted_by(|one, two| compare(one, two).is_le()) {
        elements.iter().for_each(|element| put(encoder, element));
    } else {
        put_reordered(encoder, elements, compare, put);
    }
}

#[cold]
fn put_reordered<T>(
    encoder: &mut KeyEncoder,
    elements: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
    put: impl Fn(&mut KeyEncoder, &T),
) {
    // The buffer for the order is kept with the encoder, so that nothing is allocated each time.
    let mut order = std::mem::take(&mut encoder.order);
    order.clear();
    order.extend(0..elements.len());
    order.sort_unstable_by(|one, two| {
        compare(&elements[*one], &elements[*two]).then_with(|| one.cmp(two))
    });
    order.iter().for_each(|place| put(encoder, &elements[*place]));
    encoder.order = order;
}

/// Compares texts like `str` does. Names mostly differ within their first eight bytes, and then
/// one comparison of numbers is enough.
fn compare_texts(one: &str, two: &str) -> Ordering {
    let (one, two) = (one.as_bytes(), two.as_bytes());
    match (one.first_chunk(), two.first_chunk()) {
        (Some(first), Some(second)) if first != second => {
            u64::from_be_bytes(*first).cmp(&u64::from_be_bytes(*second))
        }
        _ => one.cmp(two),
    }
}
