//! Values for serde. Nothing that is not wanted is looked at.

use std::cell::Cell;

use serde::de::{self, DeserializeSeed, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::PickleError;
use crate::value::{Value, ValueId, Values};

/// How deep values may be within each other.
const MAX_DEPTH: u32 = 128;
/// Values that may be read for each byte of the input. A pickle that refers to a value again takes two bytes.
const READS_PER_BYTE: u64 = 4;

/// How many values may still be read: a list of references to one long list is short, and long to read.
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    pub(crate) fn of(bytes: usize) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Self(Cell::new(bytes.saturating_mul(READS_PER_BYTE).saturating_add(1024)))
    }

    /// One value, and what a copy of its text would cost.
    fn spend(&self, value: Value) -> Result<(), PickleError> {
        let cost = match value {
            Value::Text { length, .. } | Value::Bytes { length, .. } => 1 + u64::from(length) / 8,
            _ => 1,
        };
        match self.0.get().checked_sub(cost) {
            Some(left) => {
                self.0.set(left);
                Ok(())
            }
            None => Err(PickleError::Entangled),
        }
    }
}

/// One value.
#[derive(Clone, Copy)]
pub(crate) struct ValueDeserializer<'a, 'de> {
    values: &'a Values<'de>,
    budget: &'a Budget,
    id: ValueId,
    depth: u32,
}

impl<'a, 'de> ValueDeserializer<'a, 'de> {
    pub(crate) const fn root(values: &'a Values<'de>, budget: &'a Budget) -> Self {
        Self { values, budget, id: values.root, depth: 0 }
    }

    fn inner(self) -> Result<Self, PickleError> {
        if self.depth >= MAX_DEPTH {
            return Err(PickleError::Entangled);
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> de::Deserializer<'de> for ValueDeserializer<'_, 'de> {
    type Error = PickleError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PickleError> {
        let value = self.values.get(self.id);
        self.budget.spend(value)?;
        match value {
            Value::None => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Int(value) => visitor.visit_i64(value),
            Value::Float(value) => visitor.visit_f64(value),
            Value::Text { start, length } => {
                let bytes = self.values.bytes(start, length);
                // Python writes lone surrogates as it has them, which are no UTF-8.
                match std::str::from_utf8(bytes) {
                    Ok(text) => visitor.visit_borrowed_str(text),
                    Err(_) => visitor.visit_string(String::from_utf8_lossy(bytes).into_owned()),
                }
            }
            Value::Bytes { start, length } => {
                visitor.visit_borrowed_bytes(self.values.bytes(start, length))
            }
            Value::Sequence(place) => {
                let items = self.values.sequence(place).iter();
                visitor.visit_seq(Items { of: self.inner()?, items })
            }
            Value::Dictionary(place) => {
                let items = self.values.sequence(place).chunks_exact(2);
                visitor.visit_map(Entries { of: self.inner()?, items, value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PickleError> {
        match self.values.get(self.id) {
            Value::None => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, PickleError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PickleError> {
        match self.values.get(self.id) {
            Value::Text { start, length } => {
                let text = String::from_utf8_lossy(self.values.bytes(start, length));
                visitor.visit_enum(text.into_deserializer())
            }
            _ => Err(de::Error::custom("a variant's name was expected")),
        }
    }

    /// What is not wanted costs nothing, however large it is.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PickleError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct Items<'a, 'de> {
    of: ValueDeserializer<'a, 'de>,
    items: std::slice::Iter<'a, ValueId>,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = PickleError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, PickleError> {
        let Some(id) = self.items.next() else { return Ok(None) };
        seed.deserialize(ValueDeserializer { id: *id, ..self.of }).map(Some)
    }
}

struct Entries<'a, 'de> {
    of: ValueDeserializer<'a, 'de>,
    items: std::slice::ChunksExact<'a, ValueId>,
    value: Option<ValueId>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = PickleError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, PickleError> {
        let Some([key, value]) = self.items.next() else { return Ok(None) };
        self.value = Some(*value);
        seed.deserialize(ValueDeserializer { id: *key, ..self.of }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, PickleError> {
        match self.value.take() {
            Some(id) => seed.deserialize(ValueDeserializer { id, ..self.of }),
            None => Err(de::Error::custom("a value before its key")),
        }
    }
}
