//! Input that Python would act on, or that is made to cost time and memory.

use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value;
use telltale_harness::{Scratch, python_with};
use telltale_pickle::{PickleError, from_slice};

#[test]
fn what_would_call_something_is_refused_by_name() {
    const TEST: &str = "hostile::what_would_call_something_is_refused_by_name";
    let Some(mut python) = python_with(TEST, "pickle") else { return };
    let scratch = Scratch::new();
    let (pickle, made) = (scratch.join("pickle"), scratch.join("made"));
    let write = "import os,pickle,sys\nclass Calls:\n    def __reduce__(self):\n        return (os.mkdir, (sys.argv[2],))\n\
                 pickle.dump([1, Calls()], open(sys.argv[1], 'wb'))";
    assert!(python.args(["-c", write]).args([&pickle, &made]).status().unwrap().success());
    let error = from_slice::<Value>(&fs::read(&pickle).unwrap()).unwrap_err();
    assert!(
        matches!(&error, PickleError::Refused { name, .. } if name.contains("GLOBAL")),
        "{error}"
    );
    assert!(!made.exists());
}

#[test]
fn lists_of_the_same_lists_are_given_up() {
    // Each of forty lists holds the one before it ten times: 10^40 values in two hundred bytes.
    let mut pickle = b"\x80\x02]q\x00".to_vec();
    for level in 1..40_u8 {
        pickle.extend([b']', b'q', level, b'(']);
        (0..10).for_each(|_| pickle.extend([b'h', level - 1]));
        pickle.push(b'e');
    }
    pickle.push(b'.');
    let began = Instant::now();
    assert_eq!(from_slice::<Value>(&pickle).unwrap_err(), PickleError::Entangled);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_list_within_itself_is_given_up() {
    let pickle = b"\x80\x02]q\x00h\x00a.";
    assert_eq!(from_slice::<Value>(pickle).unwrap_err(), PickleError::Entangled);
}

#[test]
fn lengths_and_places_beyond_the_input_take_no_memory() {
    let cases: [&[u8]; 5] = [
        b"\x80\x02X\xff\xff\xff\xff.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x02Nr\xff\xff\xff\xff.",
        b"\x80\x02j\xff\xff\xff\xff.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
    ];
    for pickle in cases {
        assert!(from_slice::<Value>(pickle).is_err(), "{pickle:?}");
    }
}

/// Opcodes with arguments that fit them, in any order: what random bytes would hardly come to.
fn opcodes() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        prop::sample::select(vec![
            b"(".to_vec(),
            b"0".to_vec(),
            b"1".to_vec(),
            b"2".to_vec(),
            b"N".to_vec(),
            b"]".to_vec(),
            b")".to_vec(),
            b"}".to_vec(),
            b"l".to_vec(),
            b"t".to_vec(),
            b"d".to_vec(),
            b"\x85".to_vec(),
            b"\x87".to_vec(),
            b"a".to_vec(),
            b"e".to_vec(),
            b"s".to_vec(),
            b"u".to_vec(),
            b"\x94".to_vec(),
            b"\x88".to_vec(),
        ]),
        (0..8_u8).prop_map(|place| vec![b'h', place]),
        (0..8_u8).prop_map(|place| vec![b'q', place]),
        any::<u8>().prop_map(|number| vec![b'K', number]),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(|text| {
            let length = u8::try_from(text.len()).unwrap();
            [vec![0x8c, length], text].concat()
        }),
    ];
    prop::collection::vec(opcode, 0..200)
        .prop_map(|opcodes| [opcodes.concat(), b".".to_vec()].concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = from_slice::<Value>(&bytes);
    }

    #[test]
    fn any_opcodes_are_read_or_refused(bytes in opcodes()) {
        let _ = from_slice::<Value>(&bytes);
    }

    #[test]
    fn a_pickle_that_is_cut_anywhere_is_refused(at in 0_usize..60) {
        let whole = b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94K\x01\x8c\x01b\x94]\x94(K\x02G?\xe0\x00\x00\x00\x00\x00\x00eu.";
        prop_assert!(from_slice::<Value>(whole).is_ok());
        prop_assume!(at < whole.len());
        prop_assert!(from_slice::<Value>(&whole[..at]).is_err());
    }
}
