//! What the derive writes: each field, each variant, each type, distinguished from every other.

use std::marker::PhantomData;

use telltale_program_cache::{KeyEncoder, KeyKind, ProgramKey};

fn bytes_of<T: ProgramKey>(value: &T) -> Vec<u8> {
    let mut encoder = KeyEncoder::new();
    encoder.begin(KeyKind::Operation);
    value.encode(&mut encoder);
    encoder.written().to_vec()
}

fn all_differ(keys: &[Vec<u8>]) {
    for (index, one) in keys.iter().enumerate() {
        for (other, two) in keys.iter().enumerate().skip(index + 1) {
            assert_ne!(one, two, "{index} and {other} have one key");
        }
    }
}

#[derive(ProgramKey, Clone)]
struct Attributes<T, const N: usize> {
    window: Option<u32>,
    scale: f32,
    sizes: Vec<T>,
    pads: [u16; N],
    mode: Mode,
    name: String,
    causal: bool,
}

#[derive(ProgramKey, Clone)]
enum Mode {
    Plain,
    Padded(u32),
    Sliced { first: u32, last: u32 },
}

fn attributes() -> Attributes<u32, 2> {
    Attributes {
        window: None,
        scale: 1.0,
        sizes: vec![1, 2],
        pads: [0, 1],
        mode: Mode::Plain,
        name: "softmax".to_owned(),
        causal: false,
    }
}

#[test]
fn every_field_is_in_the_key() {
    let base = attributes();
    let changed = [
        base.clone(),
        Attributes { window: Some(0), ..base.clone() },
        Attributes { window: Some(1), ..base.clone() },
        Attributes { scale: -1.0, ..base.clone() },
        Attributes { sizes: vec![2, 1], ..base.clone() },
        Attributes { sizes: vec![1, 2, 0], ..base.clone() },
        Attributes { pads: [1, 0], ..base.clone() },
        Attributes { mode: Mode::Padded(0), ..base.clone() },
        Attributes { mode: Mode::Padded(1), ..base.clone() },
        Attributes { mode: Mode::Sliced { first: 0, last: 1 }, ..base.clone() },
        Attributes { mode: Mode::Sliced { first: 1, last: 0 }, ..base.clone() },
        Attributes { name: "softmax ".to_owned(), ..base.clone() },
        Attributes { causal: true, ..base.clone() },
    ];
    all_differ(&changed.iter().map(bytes_of).collect::<Vec<_>>());
    assert_eq!(bytes_of(&base), bytes_of(&attributes()));
}

#[derive(ProgramKey)]
struct Left {
    size: u32,
}

#[derive(ProgramKey)]
struct Right {
    size: u32,
}

#[derive(ProgramKey)]
struct Of<T>(PhantomData<T>);

#[derive(ProgramKey)]
struct Sized32<const N: usize>;

#[test]
fn types_with_equal_fields_have_different_keys() {
    mod elsewhere {
        #[derive(telltale_program_cache::ProgramKey)]
        pub(crate) struct Left {
            pub(crate) size: u32,
        }
    }
    all_differ(&[
        bytes_of(&Left { size: 1 }),
        bytes_of(&Right { size: 1 }),
        bytes_of(&elsewhere::Left { size: 1 }),
        bytes_of(&Of::<u32>(PhantomData)),
        bytes_of(&Of::<f32>(PhantomData)),
        bytes_of(&Of::<Left>(PhantomData)),
        bytes_of(&Sized32::<1>),
        bytes_of(&Sized32::<2>),
    ]);
}

#[test]
fn a_type_is_written_with_the_version_of_its_package() {
    let key = bytes_of(&Left { size: 1 });
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    assert!(key.windows(version.len()).any(|part| part == version), "{key:?}");
}

#[test]
fn empty_values_of_different_types_have_different_keys() {
    all_differ(&[
        bytes_of(&None::<u32>),
        bytes_of(&None::<f32>),
        bytes_of(&Vec::<u32>::new()),
        bytes_of(&Vec::<i32>::new()),
        bytes_of(&String::new()),
        bytes_of(&()),
        bytes_of(&0u32),
        bytes_of(&0u64),
        bytes_of(&0i32),
        bytes_of(&0f32),
        bytes_of(&false),
        bytes_of(&None::<Option<u32>>),
        bytes_of(&Some(None::<u32>)),
    ]);
}

#[test]
fn where_one_text_ends_is_in_the_key() {
    all_differ(&[
        bytes_of(&("ab", "c")),
        bytes_of(&("a", "bc")),
        bytes_of(&("abc", "")),
        bytes_of(&("", "abc")),
    ]);
    all_differ(&[
        bytes_of(&(vec![1u32], vec![2u32, 3])),
        bytes_of(&(vec![1u32, 2], vec![3u32])),
        bytes_of(&(vec![vec![1u32], vec![2]], vec![3u32])),
    ]);
}

#[test]
fn floats_count_by_their_bits() {
    all_differ(&[bytes_of(&0.0f32), bytes_of(&-0.0f32), bytes_of(&f32::NAN)]);
    assert_eq!(bytes_of(&f32::NAN), bytes_of(&f32::NAN));
    all_differ(&[bytes_of(&1.0f64), bytes_of(&f64::from_bits(1.0f64.to_bits() + 1))]);
}
