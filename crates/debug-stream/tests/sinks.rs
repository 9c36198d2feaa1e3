//! What the sinks write, byte by byte where other tools read it.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::collections::BTreeSet;
use std::path::{Component, Path};

use telltale_debug_stream::sink::{
    DefaultConsumer, Fidelity, Saved, Totals, directory_name, write_json_line, write_npy,
    write_safetensors, write_text,
};
use telltale_debug_stream::{Event, EventKind, Losses, NextEvent, Tensor, TextStyle};
use telltale_harness::Scratch;

fn event(kind: EventKind, dtype: &str, shape: &[u64], data: &[u8]) -> Event {
    Event {
        kind,
        sequence: 5,
        time_ns: 77,
        iteration: Some(2),
        core: 3,
        pipe: 0,
        prefix: "loss".to_owned(),
        dtype: dtype.to_owned(),
        shape: shape.to_vec(),
        data: data.to_vec(),
    }
}

fn numbers() -> Event {
    let data: Vec<u8> = [1.0_f32, -2.5].iter().flat_map(|number| number.to_le_bytes()).collect();
    event(EventKind::Tensor, "float32", &[2], &data)
}

fn lost() -> NextEvent {
    NextEvent::Lost(Losses { events: 4, bytes: 1, memory: 0 })
}

#[test]
fn text_shows_everything_that_can_come() {
    let malformed = event(EventKind::Tensor, "float32", &[3], &[1, 2]);
    let unknown_dtype = event(EventKind::Tensor, "int4", &[1], &[1]);
    let text = event(EventKind::Text, "", &[], b"a \x1b[31mline");
    let unknown = event(EventKind::Unknown(9), "", &[], &[0xab; 40]);
    for (next, shown, expected) in [
        (
            NextEvent::Event(numbers()),
            Fidelity::Whole,
            "[core 3] loss#2: float32 (2), min -2.5, max 1, mean -0.75, std 1.75, 0 nan, 0 inf, \
             0 zero\n[ 1.  -2.5]\n",
        ),
        (
            lost(),
            Fidelity::Whole,
            "lost 5 events here (4 by number, 1 by bytes, 0 for want of memory)\n",
        ),
        (NextEvent::Event(text), Fidelity::Whole, "[core 3] loss#2: a \\u{1b}[31mline\n"),
        (
            NextEvent::Event(malformed),
            Fidelity::Malformed,
            "[core 3] loss#2: float32 (3) malformed: the shape needs 12 bytes and there are 2; \
             2 bytes 0102\n",
        ),
        (
            NextEvent::Event(unknown_dtype),
            Fidelity::Malformed,
            "[core 3] loss#2: int4 (1) malformed: unknown data type \"int4\"; 1 bytes 01\n",
        ),
        (
            NextEvent::Event(unknown),
            Fidelity::UnknownType,
            &format!("[core 3] loss#2: unknown type 9, 40 bytes {}...\n", "ab".repeat(32)),
        ),
    ] {
        let mut out = Vec::new();
        assert_eq!(write_text(&mut out, &next, TextStyle::default()).unwrap(), shown);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn json_is_one_line_for_each() {
    let data: Vec<u8> =
        [f32::NAN, 0.0, f32::NEG_INFINITY].iter().flat_map(|number| number.to_le_bytes()).collect();
    let special = event(EventKind::Tensor, "float32", &[3], &data);
    for (next, most, expected) in [
        (
            NextEvent::Event(numbers()),
            100,
            r#"{"version":1,"kind":"tensor","type":1,"sequence":5,"time_ns":77,"core":3,"pipe":0,"prefix":"loss","iteration":2,"bytes":8,"dtype":"float32","shape":[2],"statistics":{"min":-2.5,"max":1.0,"mean":-0.75,"std":1.75,"nan":0,"inf":0,"zero":0},"values":[1.0,-2.5]}"#,
        ),
        (
            NextEvent::Event(special),
            2,
            r#"{"version":1,"kind":"tensor","type":1,"sequence":5,"time_ns":77,"core":3,"pipe":0,"prefix":"loss","iteration":2,"bytes":12,"dtype":"float32","shape":[3],"statistics":{"min":0.0,"max":0.0,"mean":0.0,"std":0.0,"nan":1,"inf":1,"zero":1},"values":["nan",0.0],"values_left_out":1}"#,
        ),
        (
            NextEvent::Event(event(EventKind::Text, "", &[], b"\"hi\"\n")),
            0,
            r#"{"version":1,"kind":"text","type":2,"sequence":5,"time_ns":77,"core":3,"pipe":0,"prefix":"loss","iteration":2,"bytes":5,"text":"\"hi\"\n"}"#,
        ),
        (lost(), 0, r#"{"version":1,"kind":"lost","events":4,"bytes":1,"memory":0}"#),
    ] {
        let mut out = Vec::new();
        assert_eq!(write_json_line(&mut out, &next, most).unwrap(), Fidelity::Whole);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
    }
}

#[test]
fn npy_headers_are_aligned_and_small_floats_become_float32() {
    for (dtype, shape, data, descr, expected) in [
        ("int16", &[2][..], &[1, 0, 2, 0][..], "'<i2'", &[1, 0, 2, 0][..]),
        ("float8e4m3fn", &[1, 1], &[0x38], "'<f4'", &[0, 0, 0x80, 0x3f]),
        ("uint8", &[], &[9], "'|u1'", &[9]),
    ] {
        let mut file = Vec::new();
        write_npy(&mut file, &Tensor::new(dtype, shape, data).unwrap()).unwrap();
        let (header, body) = file.split_at(file.len() - expected.len());
        assert_eq!((body, header.len() % 64, header.last()), (expected, 0, Some(&b'\n')));
        assert_eq!(&header[..8], b"\x93NUMPY\x01\x00");
        assert_eq!(usize::from(u16::from_le_bytes([header[8], header[9]])), header.len() - 10);
        let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
        let start = format!(
            "{{'descr': {descr}, 'fortran_order': False, 'shape': ({}), }}",
            sizes.join(" ")
        );
        assert!(String::from_utf8_lossy(&header[10..]).starts_with(&start), "{start}");
    }
}

#[test]
fn safetensors_name_what_the_format_has_no_name_for() {
    for (dtype, expected) in [("bfloat16", "BF16"), ("float8e3m4", "U8"), ("float32r", "F32")] {
        let data = [0; 4];
        let bytes = telltale_debug_stream::Dtype::from_name(dtype).unwrap().element_bytes();
        let mut file = Vec::new();
        let tensor = Tensor::new(dtype, &[1], &data[..bytes]).unwrap();
        write_safetensors(&mut file, "a/b", &tensor).unwrap();
        let length = usize::try_from(u64::from_le_bytes(file[..8].try_into().unwrap())).unwrap();
        assert!(length.is_multiple_of(8) && file.len() == 8 + length + bytes);
        let header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
        assert_eq!(header["__metadata__"]["dtype"], dtype);
        assert_eq!(header["a/b"]["dtype"], expected);
        assert_eq!(header["a/b"]["data_offsets"], serde_json::json!([0, bytes]));
    }
}

#[test]
fn hostile_prefixes_stay_inside_and_apart() {
    let long = "x".repeat(511);
    let longer = "x".repeat(510) + "y";
    let prefixes = [
        "",
        "%",
        ".",
        "..",
        "../../etc",
        "/etc/passwd",
        "a/b",
        "a%2fb",
        "nul\0",
        "\n",
        "\u{202e}",
        "~",
        "plain",
        "layer.3",
        &long,
        &longer,
        "é",
    ];
    let mut names = BTreeSet::new();
    for prefix in prefixes {
        let name = directory_name(prefix);
        let components: Vec<Component<'_>> = Path::new(&name).components().collect();
        assert!(matches!(components[..], [Component::Normal(_)]), "{prefix:?} -> {name:?}");
        assert!(name.len() <= 255 && !name.contains('\0') && !name.starts_with('.'));
        assert!(names.insert(name), "{prefix:?} is told from the others");
    }
    assert!(names.contains("plain") && names.contains("layer.3"));
}

#[test]
fn the_default_consumer_writes_files_and_lines_and_counts_what_it_cannot_read() {
    let scratch = Scratch::new();
    let mut consumer = consumer(&scratch.join("out"), Saved::BytesAndText);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut to_error = event(EventKind::Unknown(0), "", &[], b"?");
    (to_error.pipe, to_error.prefix, to_error.iteration) = (1, "../up".to_owned(), None);
    let malformed = event(EventKind::Tensor, "float32", &[9], b"");
    for next in [
        NextEvent::Event(numbers()),
        lost(),
        NextEvent::Event(to_error),
        NextEvent::Event(malformed),
    ] {
        consumer.take(next, &mut out, &mut err).unwrap();
    }
    let read = |path: &str| std::fs::read_to_string(scratch.join(path)).unwrap();
    assert_eq!(read("out/loss/core_3/0/formatted_tensor.txt"), "[ 1.  -2.5]\n");
    let metadata = read("out/loss/core_3/1/metadata.txt");
    assert!(metadata.starts_with("dtype = float32\nshape = (9)\n"), "{metadata}");
    assert!(metadata.ends_with("\niteration = 1\n"), "{metadata}");
    assert_eq!(read("out/%2e.%2fup/core_3/0/tensor_data.bin"), "?");
    let expected = Totals { events: 3, lost: 5, unknown: 1, malformed: 1, ..Totals::default() };
    assert_eq!(consumer.totals(), expected);
    assert!(String::from_utf8(out).unwrap().contains("lost 5 events"));
    assert!(String::from_utf8(err).unwrap().starts_with("[core 3] ../up#0: unknown type 0"));
}

fn consumer(directory: &Path, saved: Saved) -> DefaultConsumer {
    DefaultConsumer::new(directory.to_owned(), saved, TextStyle::default())
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_there_is_left_alone_and_numbers_go_on() {
    let scratch = Scratch::new();
    let place = scratch.join("loss/core_3");
    std::fs::create_dir_all(place.join("6")).unwrap();
    for file in ["7", "note", "99999999999999999"] {
        std::fs::write(place.join(file), "mine").unwrap();
    }
    // Two consumers at once, as of two processes.
    let mut consumers = [(); 2].map(|()| consumer(scratch.path(), Saved::Bytes));
    for which in [0, 1, 1, 0] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let taken = consumers[which].take(NextEvent::Event(numbers()), &mut out, &mut err);
        taken.unwrap();
    }
    let expected = ["10", "11", "6", "7", "8", "9", "99999999999999999", "note"];
    assert_eq!(names(&place), expected.map(str::to_owned).into());
    assert_eq!(std::fs::read_to_string(place.join("7")).unwrap(), "mine");
    let files = ["metadata.txt", "tensor_data.bin"].map(str::to_owned).into();
    assert_eq!(names(&place.join("11")), files, "no text where bytes were asked for");
    let metadata = std::fs::read_to_string(place.join("11/metadata.txt")).unwrap();
    assert!(metadata.ends_with("\niteration = 11\n"), "{metadata}");
}

#[test]
fn what_cannot_be_saved_is_printed_and_counted_and_later_events_are_saved() {
    let scratch = Scratch::new();
    let directory = scratch.join("out");
    std::fs::write(&directory, "a file in the way").unwrap();
    let mut consumer = consumer(&directory, Saved::BytesAndText);
    let mut out = Vec::new();
    let refused = consumer.take(NextEvent::Event(numbers()), &mut out, &mut Vec::new());
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("cannot save a debug event in "), "{text}");
    assert!(text.ends_with("/out/loss/core_3"), "{text}");
    assert!(String::from_utf8(out).unwrap().starts_with("[core 3] loss#"));
    std::fs::remove_file(&directory).unwrap();
    consumer.take(NextEvent::Event(numbers()), &mut Vec::new(), &mut Vec::new()).unwrap();
    assert_eq!(names(&directory.join("loss/core_3")), ["1".to_owned()].into());
    let expected = Totals { events: 2, unsaved: 1, ..Totals::default() };
    assert_eq!(consumer.totals(), expected);
}
