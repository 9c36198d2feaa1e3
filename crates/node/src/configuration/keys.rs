//! Which keys there are, learnt from the structs themselves by asking them what they would read.
//!
//! A struct is deserialized from a source that has nothing but a way to one key; what it asks for
//! there is the key's kind. So a field that a part adds to its options is a key of the file, a
//! variable and a line of `telltale config show`, without further code.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// The deepest table.
const MAX_DEPTH: usize = 8;

/// What a key's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// A text, which may have to be of some form.
    Text,
    /// A list of texts or of tables.
    List,
    /// A table whose keys are anybody's choice.
    Map,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationKey {
    /// Its tables and its name, joined by dots.
    pub path: String,
    /// What its value is.
    pub kind: ValueKind,
}

/// All keys of `T`, in the order of its fields.
///
/// # Panics
/// When a part's options cannot be read as a struct of named fields with defaults.
pub fn keys_of<T: DeserializeOwned>() -> Vec<ConfigurationKey> {
    let mut keys = Vec::new();
    collect::<T>(&mut Vec::new(), &mut keys);
    keys
}

fn collect<T: DeserializeOwned>(path: &mut Vec<&'static str>, keys: &mut Vec<ConfigurationKey>) {
    match T::deserialize(Probe { path }) {
        Err(KeyLookup::Struct(fields)) => {
            assert!(path.len() < MAX_DEPTH, "options do not nest that deep");
            for field in fields {
                path.push(field);
                collect::<T>(path, keys);
                path.pop();
            }
        }
        Err(KeyLookup::Leaf(kind)) => keys.push(ConfigurationKey { path: path.join("."), kind }),
        Err(KeyLookup::Nothing(text)) => {
            panic!("options that cannot be probed at {path:?}: {text}")
        }
        Ok(_) => panic!("options at {path:?} ask for nothing"),
    }
}

/// What was asked for at the end of the path.
#[derive(Debug)]
enum KeyLookup {
    Struct(&'static [&'static str]),
    Leaf(ValueKind),
    Nothing(String),
}

/// A source that only has a way.
struct Probe<'a> {
    path: &'a [&'static str],
}

impl fmt::Display for KeyLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for KeyLookup {}

impl serde::de::Error for KeyLookup {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Nothing(message.to_string())
    }
}

/// Deserializer methods that say which kind of value is asked for.
macro_rules! leaves {
    ($($method:ident => $kind:ident),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, KeyLookup> {
            Err(KeyLookup::Leaf(ValueKind::$kind))
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = KeyLookup;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, KeyLookup> {
        Err(KeyLookup::custom("a value of any kind"))
    }

    leaves! {
        deserialize_bool => Bool,
        deserialize_u8 => Integer, deserialize_u16 => Integer,
        deserialize_u32 => Integer, deserialize_u64 => Integer,
        deserialize_i8 => Integer, deserialize_i16 => Integer,
        deserialize_i32 => Integer, deserialize_i64 => Integer,
        deserialize_f32 => Float, deserialize_f64 => Float,
        deserialize_char => Text, deserialize_str => Text, deserialize_string => Text,
        deserialize_identifier => Text,
        deserialize_seq => List,
        deserialize_map => Map,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeyLookup> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, KeyLookup> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, KeyLookup> {
        Err(KeyLookup::Leaf(ValueKind::Text))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, KeyLookup> {
        match self.path.split_first() {
            None => Err(KeyLookup::Struct(fields)),
            Some((first, rest)) => visitor.visit_map(OneKey { key: Some(first), rest }),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// A table with one key.
struct OneKey<'a> {
    key: Option<&'static str>,
    rest: &'a [&'static str],
}

impl<'de> MapAccess<'de> for OneKey<'_> {
    type Error = KeyLookup;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, KeyLookup> {
        let Some(key) = self.key.take() else { return Ok(None) };
        let key: StrDeserializer<'_, KeyLookup> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, KeyLookup> {
        seed.deserialize(Probe { path: self.rest })
    }
}

#[cfg(test)]
mod tests {
    use super::{ValueKind, keys_of};
    use serde::Deserialize;
    use std::path::PathBuf;

    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Outer {
        _count: u64,
        _inner: Inner,
        _maybe: Option<PathBuf>,
    }

    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Inner {
        _list: Vec<String>,
        _level: telltale_server::log::Level,
        _rules: std::collections::BTreeMap<String, u32>,
        #[serde(rename = "on")]
        _switch: Option<bool>,
    }

    #[test]
    fn the_fields_of_structs_are_keys() {
        let found = keys_of::<Outer>();
        let found: Vec<_> = found.iter().map(|key| (key.path.as_str(), key.kind)).collect();
        let expected = [
            ("_count", ValueKind::Integer),
            ("_inner._list", ValueKind::List),
            ("_inner._level", ValueKind::Text),
            ("_inner._rules", ValueKind::Map),
            ("_inner.on", ValueKind::Bool),
            ("_maybe", ValueKind::Text),
        ];
        assert_eq!(found, expected);
    }
}
