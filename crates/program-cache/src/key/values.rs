//! How Rust's own types are written into a key. Floats count by their bits, so 0.0 and -0.0 are
//! two values and each NaN is equal to itself. Maps and sets without an order, pointers and cells
//! are left out on purpose.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{KeyEncoder, ProgramKey};

/// The numbers of the types below. They are written before values and never reused; 0 begins the
/// name of a type that is not here.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Bool = 1,
    Char,
    U8,
    U16,
    U32,
    U64,
    U128,
    Usize,
    I8,
    I16,
    I32,
    I64,
    I128,
    Isize,
    F32,
    F64,
    Text,
    Unit,
    Option,
    Sequence,
    Array,
    Map,
    Set,
    Tuple,
    Marker,
}

fn put_tag(encoder: &mut KeyEncoder, tag: Tag) {
    encoder.put([tag as u8]);
}

macro_rules! numbers {
    ($($type:ty: $tag:ident, $value:ident => $bytes:expr;)*) => {$(
        impl ProgramKey for $type {
            #[inline]
            fn encode_type(encoder: &mut KeyEncoder) {
                put_tag(encoder, Tag::$tag);
            }

            #[inline]
            fn encode_value(&self, encoder: &mut KeyEncoder) {
                let $value = *self;
                encoder.put($bytes);
            }
        }
    )*};
}

numbers! {
    bool: Bool, value => [u8::from(value)];
    char: Char, value => u32::from(value).to_le_bytes();
    u8: U8, value => value.to_le_bytes();
    u16: U16, value => value.to_le_bytes();
    u32: U32, value => value.to_le_bytes();
    u64: U64, value => value.to_le_bytes();
    u128: U128, value => value.to_le_bytes();
    usize: Usize, value => value.to_le_bytes();
    i8: I8, value => value.to_le_bytes();
    i16: I16, value => value.to_le_bytes();
    i32: I32, value => value.to_le_bytes();
    i64: I64, value => value.to_le_bytes();
    i128: I128, value => value.to_le_bytes();
    isize: Isize, value => value.to_le_bytes();
    f32: F32, value => value.to_bits().to_le_bytes();
    f64: F64, value => value.to_bits().to_le_bytes();
}

macro_rules! texts {
    ($($type:ty),*) => {$(
        impl ProgramKey for $type {
            #[inline]
            fn encode_type(encoder: &mut KeyEncoder) {
                put_tag(encoder, Tag::Text);
            }

            #[inline]
            fn encode_value(&self, encoder: &mut KeyEncoder) {
                encoder.text(self);
            }
        }
    )*};
}

texts!(str, String, Cow<'_, str>);

impl ProgramKey for () {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Unit);
    }

    fn encode_value(&self, _encoder: &mut KeyEncoder) {}
}

impl<T: ProgramKey> ProgramKey for Option<T> {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Option);
        T::encode_type(encoder);
    }

    fn encode_value(&self, encoder: &mut KeyEncoder) {
        encoder.put([u8::from(self.is_some())]);
        if let Some(value) = self {
            value.encode_value(encoder);
        }
    }
}

impl<T: ProgramKey> ProgramKey for [T] {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Sequence);
        T::encode_type(encoder);
    }

    #[inline]
    fn encode_value(&self, encoder: &mut KeyEncoder) {
        encoder.length(self.len());
        for value in self {
            value.encode_value(encoder);
        }
    }
}

impl<T: ProgramKey> ProgramKey for Vec<T> {
    fn encode_type(encoder: &mut KeyEncoder) {
        <[T]>::encode_type(encoder);
    }

    fn encode_value(&self, encoder: &mut KeyEncoder) {
        self.as_slice().encode_value(encoder);
    }
}

impl<T: ProgramKey, const N: usize> ProgramKey for SmallVec<[T; N]> {
    fn encode_type(encoder: &mut KeyEncoder) {
        <[T]>::encode_type(encoder);
    }

    #[inline]
    fn encode_value(&self, encoder: &mut KeyEncoder) {
        self.as_slice().encode_value(encoder);
    }
}

impl<T: ProgramKey, const N: usize> ProgramKey for [T; N] {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Array);
        T::encode_type(encoder);
        N.encode_value(encoder);
    }

    #[inline]
    fn encode_value(&self, encoder: &mut KeyEncoder) {
        for value in self {
            value.encode_value(encoder);
        }
    }
}

impl<K: ProgramKey, V: ProgramKey> ProgramKey for BTreeMap<K, V> {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Map);
        K::encode_type(encoder);
        V::encode_type(encoder);
    }

    fn encode_value(&self, encoder: &mut KeyEncoder) {
        encoder.length(self.len());
        for (key, value) in self {
            key.encode_value(encoder);
            value.encode_value(encoder);
        }
    }
}

impl<T: ProgramKey> ProgramKey for BTreeSet<T> {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Set);
        T::encode_type(encoder);
    }

    fn encode_value(&self, encoder: &mut KeyEncoder) {
        encoder.length(self.len());
        for value in self {
            value.encode_value(encoder);
        }
    }
}

impl<T: ProgramKey + ?Sized> ProgramKey for PhantomData<T> {
    fn encode_type(encoder: &mut KeyEncoder) {
        put_tag(encoder, Tag::Marker);
        T::encode_type(encoder);
    }

    fn encode_value(&self, _encoder: &mut KeyEncoder) {}
}

/// What points at a value counts as the value.
macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: ProgramKey + ?Sized> ProgramKey for $type {
            fn encode_type(encoder: &mut KeyEncoder) {
                T::encode_type(encoder);
            }

            fn encode_value(&self, encoder: &mut KeyEncoder) {
                T::encode_value(self, encoder);
            }
        }
    )*};
}

transparent!(&T, Box<T>, Arc<T>);

macro_rules! tuples {
    ($($count:literal: $($name:ident)*;)*) => {$(
        impl<$($name: ProgramKey),*> ProgramKey for ($($name,)*) {
            fn encode_type(encoder: &mut KeyEncoder) {
                put_tag(encoder, Tag::Tuple);
                encoder.put([$count]);
                $($name::encode_type(encoder);)*
            }

            fn encode_value(&self, encoder: &mut KeyEncoder) {
                #[allow(non_snake_case)] // a tuple's parts are named after their types here
                let ($($name,)*) = self;
                $($name.encode_value(encoder);)*
            }
        }
    )*};
}

tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
}
