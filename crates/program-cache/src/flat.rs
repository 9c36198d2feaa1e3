//! A program described without a nest of lists: its key and its dispatch words are written straight
//! into buffers that are kept from one description to the next, so that describing a program a
//! second time allocates nothing. The key is that of the nested description, byte for byte.

use crate::arguments::{PlacementRuns, fill_range};
use crate::cores::{CoreCoord, CoreRange};
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::circular_buffer::CircularBufferDescriptor;
use crate::descriptor::decoding::DecodeError;
use crate::descriptor::encoding::{
    KernelHead, put_circular_buffer, put_kernel_head, put_runs, put_semaphores,
};
use crate::descriptor::semaphore::SemaphoreDescriptor;
use crate::key::{Key, KeyEncoder, KeyKind};

/// The buffers. [`Self::begin`] starts a description and forgets the last one.
#[derive(Debug, Clone, Default)]
pub struct FlatDescriptor {
    encoder: KeyEncoder,
    words: Words,
    /// The cores of the kernel that is being described.
    placement: PlacementRuns,
}

/// A description that takes kernels; then come circular buffers.
#[derive(Debug)]
pub struct FlatKernels<'a> {
    flat: &'a mut FlatDescriptor,
    count: Count,
}

/// A kernel that takes the words of its cores.
#[derive(Debug)]
pub struct FlatArguments<'a> {
    flat: &'a mut FlatDescriptor,
}

/// A description that takes circular buffers; semaphores finish it.
#[derive(Debug)]
pub struct FlatCircularBuffers<'a> {
    flat: &'a mut FlatDescriptor,
    count: Count,
}

/// A finished description.
#[derive(Debug, Clone, Copy)]
pub struct FlatProgram<'a> {
    key: Key<'a>,
    words: &'a [u32],
}

/// A number of elements that is written when all have come.
#[derive(Debug)]
struct Count {
    position: usize,
    elements: u32,
}

/// Words of which the front is in use; the rest was initialised by an earlier description.
#[derive(Debug, Clone, Default)]
struct Words {
    words: Vec<u32>,
    used: usize,
}

// === impl FlatDescriptor ===

impl FlatDescriptor {
    /// Empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a description.
    pub fn begin(&mut self) -> FlatKernels<'_> {
        self.words.used = 0;
        self.encoder.begin(KeyKind::Program);
        let count = Count::begin(&mut self.encoder);
        FlatKernels { flat: self, count }
    }

    fn finish_kernel(&mut self) {
        put_runs(&mut self.encoder, self.placement.runs());
        self.placement.clear();
    }
}

// === impl FlatKernels ===

impl<'a> FlatKernels<'a> {
    /// Adds a kernel with the words that all of its cores are given; what comes back takes those
    /// of each core.
    pub fn kernel<T: AsRef<str>>(
        &mut self,
        head: &KernelHead<'_, T>,
        common_runtime_arguments: &[u32],
    ) -> FlatArguments<'_> {
        if self.count.elements > 0 {
            self.flat.finish_kernel();
        }
        self.count.elements += 1;
        put_kernel_head(&mut self.flat.encoder, head, common_runtime_arguments.len());
        let place = self.flat.words.room(common_runtime_arguments.len());
        place.copy_from_slice(common_runtime_arguments);
        FlatArguments { flat: self.flat }
    }

    /// Goes on to circular buffers.
    #[must_use]
    pub fn circular_buffers(self) -> FlatCircularBuffers<'a> {
        let Self { flat, count } = self;
        if count.elements > 0 {
            flat.finish_kernel();
        }
        count.end(&mut flat.encoder);
        let count = Count::begin(&mut flat.encoder);
        FlatCircularBuffers { flat, count }
    }
}

// === impl FlatArguments ===

impl FlatArguments<'_> {
    /// Gives one core its words.
    ///
    /// # Panics
    /// For 2^32 words and more.
    pub fn push(&mut self, core: CoreCoord, words: &[u32]) {
        let count = u32::try_from(words.len()).expect("a core has fewer than 2^32 words");
        self.flat.placement.push(core, count);
        self.flat.words.room(words.len()).copy_from_slice(words);
    }

    /// Gives each core of a rectangle `N` words, row by row.
    ///
    /// # Panics
    /// For 2^32 words a core and more.
    #[inline]
    pub fn push_range<const N: usize>(
        &mut self,
        cores: CoreRange,
        words_of: impl FnMut(CoreCoord) -> [u32; N],
    ) {
        let count = u32::try_from(N).expect("a core has fewer than 2^32 words");
        self.flat.placement.push_range(cores, count);
        fill_range(self.flat.words.room(cores.core_count() * N), cores, words_of);
    }
}

// === impl FlatCircularBuffers ===

impl<'a> FlatCircularBuffers<'a> {
    /// Adds a circular buffer.
    pub fn circular_buffer(&mut self, buffer: &CircularBufferDescriptor) {
        self.count.elements += 1;
        put_circular_buffer(&mut self.flat.encoder, buffer);
        if let Some(address) = buffer.placement.address() {
            self.flat.words.room(1).copy_from_slice(&[*address]);
        }
    }

    /// Ends the description with the program's semaphores.
    #[must_use]
    pub fn finish(self, semaphores: &[SemaphoreDescriptor]) -> FlatProgram<'a> {
        let Self { flat, count } = self;
        count.end(&mut flat.encoder);
        put_semaphores(&mut flat.encoder, semaphores);
        FlatProgram { key: flat.encoder.key(), words: flat.words.written() }
    }
}

// === impl FlatProgram ===

impl<'a> FlatProgram<'a> {
    /// The key; the same as that of the nested description.
    #[must_use]
    pub const fn key(&self) -> Key<'a> {
        self.key
    }

    /// All dispatch words, in the order of [`ArgumentLayout`](crate::slots::ArgumentLayout).
    #[must_use]
    pub const fn words(&self) -> &'a [u32] {
        self.words
    }

    /// The nested description, for a back end that compiles it.
    ///
    /// # Errors
    /// None for what this module wrote; [`DecodeError`] stands for a mistake in it.
    pub fn to_descriptor(&self) -> Result<ProgramDescriptor, DecodeError> {
        ProgramDescriptor::from_key(self.key.bytes(), self.words)
    }
}

// === impl Count ===

impl Count {
    fn begin(encoder: &mut KeyEncoder) -> Self {
        let position = encoder.position();
        encoder.put_u32(0);
        Self { position, elements: 0 }
    }

    fn end(self, encoder: &mut KeyEncoder) {
        encoder.replace_u32(self.position, self.elements);
    }
}

// === impl Words ===

impl Words {
    fn written(&self) -> &[u32] {
        self.words.get(..self.used).unwrap_or_default()
    }

    /// The next `count` words, to be written.
    #[inline]
    fn room(&mut self, count: usize) -> &mut [u32] {
        let start = self.used;
        let end = start + count;
        if end > self.words.len() {
            self.words.resize(end.next_power_of_two(), 0);
        }
        self.used = end;
        self.words.get_mut(start..end).unwrap_or_default()
    }
}
