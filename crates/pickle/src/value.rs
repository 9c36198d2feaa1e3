//! Values of a pickle, each kept once.

/// Which value: its place among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueId(pub(crate) u32);

/// One value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// UTF-8 text in the input.
    Text {
        start: u32,
        length: u32,
    },
    /// Bytes in the input.
    Bytes {
        start: u32,
        length: u32,
    },
    /// A list or tuple: its place among the sequences.
    Sequence(u32),
    /// A dictionary: keys and values in turn, by its place among the sequences.
    Dictionary(u32),
}

/// All values of a pickle.
#[derive(Debug)]
pub(crate) struct Values<'de> {
    pub(crate) input: &'de [u8],
    pub(crate) values: Vec<Value>,
    pub(crate) sequences: Vec<Vec<ValueId>>,
    pub(crate) root: ValueId,
}

impl<'de> Values<'de> {
    pub(crate) fn get(&self, id: ValueId) -> Value {
        // Ids are made with their values.
        self.values.get(id.0 as usize).copied().unwrap_or(Value::None)
    }

    pub(crate) fn sequence(&self, place: u32) -> &[ValueId] {
        self.sequences.get(place as usize).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn bytes(&self, start: u32, length: u32) -> &'de [u8] {
        let start = start as usize;
        self.input.get(start..start + length as usize).unwrap_or_default()
    }
}
