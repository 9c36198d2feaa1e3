//! Captures read back: whole, damaged, growing, and made of anything.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::{any, prop, proptest};
use proptest::test_runner::Config;
use telltale_debug_stream::capture::{
    Capture, CaptureReadError, CapturedEvent, Directory, Item, NoTensor, Payload, Sequential,
    write_event_file_start, write_event_record, write_item_line,
};
use telltale_debug_stream::sink::write_json_line;
use telltale_debug_stream::{Dtype, Event, EventKind, Losses, NextEvent};
use telltale_harness::{Scratch, wait_until};

const TIMEOUT: Duration = Duration::from_secs(60);

fn event(sequence: u64, prefix: &str, dtype: Dtype) -> Event {
    let data: Vec<u8> = (0..6).flat_map(|code| vec![code * 17; dtype.element_bytes()]).collect();
    Event {
        kind: EventKind::Tensor,
        sequence,
        time_ns: 1_000 + sequence,
        iteration: Some(sequence),
        core: 1,
        pipe: 0,
        prefix: prefix.to_owned(),
        dtype: dtype.name().to_owned(),
        shape: vec![2, 3],
        data,
    }
}

fn captured(event: &Event) -> CapturedEvent {
    CapturedEvent {
        kind: event.kind,
        sequence: Some(event.sequence),
        time_ns: Some(event.time_ns),
        iteration: event.iteration,
        core: Some(event.core),
        pipe: event.pipe,
        prefix: event.prefix.clone(),
        dtype: event.dtype.clone(),
        shape: event.shape.clone(),
        bytes: event.data.len() as u64,
        payload: Payload::Held(event.data.clone()),
    }
}

fn item(event: &Event) -> Item {
    Item::Event(Box::new(captured(event)))
}

/// Everything that can be read from these bytes.
fn read(bytes: &[u8]) -> Result<Vec<Item>, CaptureReadError> {
    let mut reader = Sequential::new(bytes);
    let mut items = Vec::new();
    while let Some(item) = reader.next_item()? {
        items.push(item);
    }
    items.extend(std::iter::from_fn(|| reader.next_left()));
    Ok(items)
}

fn event_file(items: &[Item]) -> Vec<u8> {
    let mut file = Vec::new();
    write_event_file_start(&mut file).unwrap();
    items.iter().for_each(|item| write_event_record(&mut file, item).unwrap());
    file
}

fn some_items() -> Vec<Item> {
    vec![
        item(&event(0, "loss", Dtype::Float32)),
        Item::Lost(Losses { events: 3, bytes: 1, memory: 0 }),
        Item::Missing { core: Some(1), events: 2 },
        item(&Event {
            kind: EventKind::User(300),
            dtype: String::new(),
            shape: Vec::new(),
            ..event(7, "x", Dtype::Int8)
        }),
        item(&event(8, "gr\u{202e}ad", Dtype::Bfloat16)),
    ]
}

fn sequences(items: &[Item]) -> Vec<Option<u64>> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Event(event) => Some(event.sequence),
            _ => None,
        })
        .collect()
}

fn unreadable(items: &[Item]) -> usize {
    items.iter().filter(|item| matches!(item, Item::Unreadable(_))).count()
}

/// Writes an event as Neuron's consumer does, or with more facts of ours.
fn dump(place: &Path, dtype: &str, shape: &str, data: &[u8], more: &str) {
    fs::create_dir_all(place).unwrap();
    let bytes = data.len();
    let metadata = format!("dtype = {dtype}\nshape = {shape}\ndata_size = {bytes}\n{more}");
    fs::write(place.join("metadata.txt"), metadata).unwrap();
    fs::write(place.join("tensor_data.bin"), data).unwrap();
}

fn all(path: &Path) -> Vec<Item> {
    let mut capture = Capture::open(path).unwrap();
    std::iter::from_fn(|| capture.next_item().unwrap()).collect()
}

#[test]
fn lines_of_every_type_come_back_with_the_same_values() {
    for dtype in Dtype::ALL {
        let event = event(4, "a \"b\"\n", dtype);
        let mut line = Vec::new();
        let _ = write_json_line(&mut line, &NextEvent::Event(event.clone()), 100).unwrap();
        let items = read(&line).unwrap();
        let [Item::Event(found)] = &items[..] else { panic!("{items:?}") };
        assert_eq!(found.prefix, event.prefix);
        let expected = captured(&event);
        let values = |event: &CapturedEvent| {
            format!("{:?}", event.tensor().unwrap().values().collect::<Vec<_>>())
        };
        assert_eq!(values(found), values(&expected), "{dtype:?}");
        let mut again = Vec::new();
        write_item_line(&mut again, &items[0], Some(100)).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(line).unwrap());
    }
}

#[test]
fn lines_hold_the_bytes_of_what_has_no_values() {
    let malformed = Event { data: vec![0, 0xab], ..event(1, "a", Dtype::Float32) };
    let items = [some_items()[3].clone(), item(&malformed)];
    for expected in items {
        let mut line = Vec::new();
        write_item_line(&mut line, &expected, Some(6)).unwrap();
        assert_eq!(read(&line).unwrap(), [expected]);
    }
    let bad = br#"{"kind":"user","type":300,"data":"0g"}"#;
    assert_eq!(unreadable(&read(bad).unwrap()), 1);
}

#[test]
fn what_a_line_leaves_out_is_absent_and_not_nothing() {
    let mut line = Vec::new();
    write_item_line(&mut line, &item(&event(4, "a", Dtype::Int16)), None).unwrap();
    let items = read(&line).unwrap();
    let [Item::Event(found)] = &items[..] else { panic!("{items:?}") };
    assert_eq!(found.tensor().unwrap_err(), NoTensor::LeftOut);
    assert_eq!(found.statistics(), captured(&event(4, "a", Dtype::Int16)).statistics());
    assert_eq!(found.bytes, 12);
}

#[test]
fn an_event_file_holds_every_byte_and_survives_damage() {
    let items = some_items();
    let file = event_file(&items);
    assert_eq!(read(&file).unwrap(), items);
    // Cut anywhere: what is whole is there, and at most one more thing is reported.
    for length in 16..file.len() {
        let found = read(&file[..length]).unwrap();
        let whole = found.len() - unreadable(&found);
        assert_eq!(found[..whole], items[..whole], "{length}");
        assert!(whole < items.len() && unreadable(&found) <= 1, "{length}");
    }
    // A byte changed anywhere: at most the record that has it is lost, and that is reported.
    for at in 16..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x40;
        let found = read(&damaged).unwrap();
        let whole: Vec<&Item> = found.iter().filter(|item| items.contains(item)).collect();
        assert_eq!((whole.len(), unreadable(&found)), (items.len() - 1, 1), "{at}: {found:?}");
    }
    let mut later = file;
    later[8] = 2;
    assert!(matches!(read(&later), Err(CaptureReadError::Version(2))));
}

#[test]
fn marks_that_lie_within_each_other_are_not_hashed_again_and_again() {
    const MARKS: usize = 60_000;
    const RECORD_BYTES: usize = 32;
    let whole = event_file(&some_items()[..1]);
    let mut file = whole.clone();
    // Each claims all that is behind it: together they claim 57 GB.
    for left in (0..MARKS).rev() {
        let mut fixed = [0; RECORD_BYTES];
        fixed[..8].copy_from_slice(&whole[16..24]);
        fixed[16..24].copy_from_slice(&((left * RECORD_BYTES) as u64).to_le_bytes());
        file.extend(fixed);
    }
    let found = read(&file).unwrap();
    assert_eq!((found.len(), unreadable(&found)), (2, 1));
}

#[test]
fn lines_that_are_none_are_reported_by_number_and_passed_over() {
    let mut text =
        b"hello\n\n{\"kind\":\"tensor\"}\n{\"version\":9,\"kind\":\"tensor\",\"type\":1}\n"
            .to_vec();
    write_item_line(&mut text, &item(&event(4, "a", Dtype::Int8)), Some(9)).unwrap();
    text.extend_from_slice(b"{\"kind\":\"tensor\",\"ty");
    let items = read(&text).unwrap();
    let places: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            Item::Unreadable(reported) => Some(reported.place.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        (places, sequences(&items)),
        (vec!["line 1", "line 3", "line 4", "line 6"], vec![Some(4)])
    );
    assert!(matches!(read(b"\x93NUMPY\x01\0v\0"), Err(CaptureReadError::NoCapture)));
    assert_eq!(read(b"").unwrap(), []);
}

#[test]
fn a_file_that_grows_gives_each_event_once_it_is_whole() {
    let scratch = Scratch::new();
    let path = scratch.join("events");
    let items = some_items();
    let mut lines = Vec::new();
    items.iter().for_each(|item| write_item_line(&mut lines, item, Some(9)).unwrap());
    for whole in [event_file(&items), lines] {
        fs::write(&path, b"").unwrap();
        let Capture::File(mut reader) = Capture::open(&path).unwrap() else { panic!("a file") };
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        let mut found = Vec::new();
        for piece in whole.chunks(7) {
            file.write_all(piece).unwrap();
            while let Some(item) = reader.next_item().unwrap() {
                found.push(item);
            }
        }
        assert_eq!((found.len(), reader.position()), (items.len(), whole.len() as u64));
        assert_eq!(reader.next_left(), None);
    }
}

#[test]
fn a_directory_is_read_in_order_with_what_its_paths_say() {
    let scratch = Scratch::new();
    let root = scratch.path();
    let ours = |time: u64, sequence: u64| {
        format!(
            "prefix = o/p\ntype = 1\ncore = 2\nsequence = {sequence}\ntime_ns = {time}\niteration = 0\n"
        )
    };
    dump(&root.join("o%2fp/core_2/1"), "int8", "(2)", &[1, 2], &ours(50, 9));
    dump(&root.join("o%2fp/core_2/0"), "int8", "(2)", &[3, 4], &ours(20, 5));
    dump(&root.join("layer/0/core_7/12"), "float32", "(1,)", &[0, 0, 128, 63], "");
    dump(&root.join("bad/core_0/0"), "int8", "(1", &[1], "");
    dump(&root.join("short/core_0/0"), "int8", "(4)", &[1, 2, 3, 4], "");
    fs::write(root.join("short/core_0/0/tensor_data.bin"), b"12").unwrap();
    dump(&root.join("o%2fp/core_2/.unfinished-0"), "int8", "(1)", &[1], "");
    std::os::unix::fs::symlink(root, root.join("loop")).unwrap();
    let items = all(root);
    assert_eq!(sequences(&items), [Some(5), Some(9), None]);
    assert_eq!(items[1], Item::Missing { core: Some(2), events: 3 });
    assert_eq!((items.len(), unreadable(&items)), (6, 2));
    let neurons = items.iter().find_map(|item| match item {
        Item::Event(event) if event.sequence.is_none() => Some(event.clone()),
        _ => None,
    });
    let mut neurons = neurons.unwrap();
    assert_eq!(
        (neurons.prefix.as_str(), neurons.core, neurons.iteration),
        ("layer/0", Some(7), Some(12))
    );
    neurons.load().unwrap();
    assert_eq!(neurons.statistics().unwrap().mean, Some(1.0));
    let one = all(&root.join("layer/0/core_7/12"));
    let [Item::Event(one)] = &one[..] else { panic!("{one:?}") };
    assert_eq!((one.prefix.as_str(), one.core), ("0", Some(7)));
}

#[test]
fn hostile_files_in_a_directory_are_reported_and_not_waited_for() {
    let scratch = Scratch::new();
    let root = scratch.path();
    let fifo = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    for place in ["pipe", "link", "long"] {
        fs::create_dir(root.join(place)).unwrap();
    }
    fifo(&root.join("pipe/metadata.txt"));
    std::os::unix::fs::symlink("/etc/passwd", root.join("link/metadata.txt")).unwrap();
    fs::write(root.join("long/metadata.txt"), "dtype = x\n".repeat(100_000)).unwrap();
    dump(&root.join("data"), "int8", "()", b"", "");
    fs::remove_file(root.join("data/tensor_data.bin")).unwrap();
    fifo(&root.join("data/tensor_data.bin"));
    let items = all(root);
    assert_eq!((items.len(), unreadable(&items)), (4, 4), "{items:?}");
    assert!(Capture::open(&root.join("pipe/metadata.txt")).is_err());
}

#[test]
fn an_event_written_behind_the_look_that_found_a_later_one_is_not_missing() {
    let scratch = Scratch::new();
    let root = scratch.path();
    let write = |prefix: &str, sequence: u64| {
        let more = format!("sequence = {sequence}\ntime_ns = {sequence}\n");
        dump(
            &root.join(prefix).join("core_0").join(sequence.to_string()),
            "int8",
            "(1)",
            &[1],
            &more,
        );
    };
    write("a", 0);
    write("b", 3);
    let mut directory = Directory::follow(root).unwrap();
    write("a", 2);
    write("a", 1);
    let found: Vec<_> = std::iter::from_fn(|| directory.next_item()).map(number).collect();
    assert_eq!(found, [Some(0), Some(1), Some(2), Some(3)]);
    // What does not come is reported as missing.
    write("b", 5);
    directory.look_again().unwrap();
    let found: Vec<_> = std::iter::from_fn(|| directory.next_item()).map(number).collect();
    assert_eq!(found, [None, Some(5)]);
}

/// An event's sequence number; none for what is missing.
fn number(item: Item) -> Option<u64> {
    match item {
        Item::Event(event) => event.sequence,
        Item::Missing { events: 1, .. } => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_that_is_followed_gives_each_event_once_when_it_is_whole() {
    let scratch = Scratch::new();
    let root = scratch.path();
    dump(&root.join("a/core_0/0"), "int8", "(1)", &[1], "sequence = 0\n");
    let mut directory = Directory::follow(root).unwrap();
    let mut found = Vec::new();
    let mut take = |directory: &mut Directory| {
        directory.look_again().unwrap();
        found.extend(std::iter::from_fn(|| directory.next_item()));
        found.len()
    };
    assert_eq!(take(&mut directory), 1);
    // Below directories that are new, and as the default consumer names what is whole.
    let unfinished = root.join("b/core_3/.unfinished-1");
    dump(&unfinished, "int8", "(1)", &[2], "sequence = 1\n");
    assert_eq!(take(&mut directory), 1);
    fs::rename(&unfinished, root.join("b/core_3/0")).unwrap();
    wait_until("the event that was renamed", TIMEOUT, || take(&mut directory) == 2);
    // Piece by piece, as Neuron's consumer writes.
    let place = root.join("b/core_3/1");
    dump(&place, "int8", "(4)", &[1, 2, 3, 4], "sequence = 2\n");
    fs::write(place.join("tensor_data.bin"), b"12").unwrap();
    assert_eq!((take(&mut directory), directory.unfinished()), (2, 1));
    fs::write(place.join("tensor_data.bin"), b"1234").unwrap();
    wait_until("the event that was completed", TIMEOUT, || take(&mut directory) == 3);
    fs::write(place.join("tensor_data.bin"), b"4321").unwrap();
    assert_eq!((take(&mut directory), directory.unfinished()), (3, 0));
    fs::remove_dir_all(root).unwrap();
    wait_until("the directory to be gone", TIMEOUT, || {
        take(&mut directory);
        directory.is_gone()
    });
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn anything_at_all_is_read_to_its_end(
        form in 0..3,
        mut bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        at in any::<prop::sample::Index>(),
    ) {
        // Alone, behind the start of an event file, and inside one.
        let whole = event_file(&some_items());
        match form {
            0 => {}
            1 => bytes = [&whole[..16], &bytes].concat(),
            _ => {
                let at = 16 + at.index(whole.len() - 16);
                bytes = [&whole[..at], &bytes, &whole[at..]].concat();
            }
        }
        if let Ok(items) = read(&bytes) {
            assert!(items.len() <= bytes.len() + 1);
            assert!(form != 2 || items.len() >= some_items().len() - 1);
        }
    }
}
