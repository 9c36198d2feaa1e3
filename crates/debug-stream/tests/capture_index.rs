//! An index has the events that reading from the start to the end gives, however damaged the file is.

use std::fs;
use std::path::Path;

use proptest::prelude::{any, prop, proptest};
use proptest::test_runner::Config;
use telltale_debug_stream::capture::{
    Capture, CaptureIndex, CapturedEvent, IndexError, IndexLimits, Item, Payload,
    write_event_file_start, write_event_record, write_item_line,
};
use telltale_debug_stream::{EventKind, Filter, Losses};
use telltale_harness::Scratch;

fn event(sequence: u64) -> CapturedEvent {
    let data = vec![u8::try_from(sequence % 256).unwrap(); 8];
    CapturedEvent {
        kind: EventKind::Tensor,
        sequence: Some(sequence),
        time_ns: Some(1_000 + sequence),
        iteration: Some(sequence / 2),
        core: Some(u32::try_from(sequence % 2).unwrap()),
        pipe: 0,
        prefix: format!("layer.{}", sequence % 3),
        dtype: String::from("float32"),
        shape: vec![2],
        bytes: 8,
        payload: Payload::Held(data),
    }
}

fn items() -> Vec<Item> {
    let mut items: Vec<Item> = (0..8).map(|number| Item::Event(Box::new(event(number)))).collect();
    items.insert(3, Item::Lost(Losses { events: 2, ..Losses::default() }));
    items
}

fn file(is_lines: bool) -> Vec<u8> {
    file_of(&items(), is_lines)
}

fn file_of(items: &[Item], is_lines: bool) -> Vec<u8> {
    let mut file = Vec::new();
    if is_lines {
        items.iter().for_each(|item| write_item_line(&mut file, item, Some(10)).unwrap());
    } else {
        write_event_file_start(&mut file).unwrap();
        items.iter().for_each(|item| write_event_record(&mut file, item).unwrap());
    }
    file
}

/// What is read from the start to the end; none if it is no capture.
fn read(path: &Path) -> Option<Vec<Item>> {
    let mut capture = Capture::open(path).unwrap();
    let mut items = Vec::new();
    while let Some(item) = capture.next_item().ok()? {
        items.push(item);
    }
    items.extend(std::iter::from_fn(|| capture.next_left()));
    Some(items)
}

fn is_event(item: &Item) -> bool {
    matches!(item, Item::Event(_))
}

#[test]
fn numbers_facts_and_gaps_are_those_of_the_file() {
    let place = Scratch::new();
    let path = place.join("capture");
    for is_lines in [false, true] {
        fs::write(&path, file(is_lines)).unwrap();
        let index = CaptureIndex::open(&path, || true).unwrap();
        assert_eq!((index.len(), index.is_empty(), index.more_gaps()), (8, false, 0));
        let [gap] = index.gaps() else { panic!("{:?}", index.gaps()) };
        assert_eq!((gap.before, &gap.item), (3, &items()[3]));
        let facts = index.facts(5).unwrap();
        assert_eq!((facts.prefix, facts.core, facts.iteration), ("layer.2", Some(1), Some(2)));
        assert_eq!(index.load(5).unwrap(), Some(event(5)));
        assert!(index.facts(8).is_none() && index.load(8).unwrap().is_none());
        let filter: Filter = "core=1;every=2".parse().unwrap();
        assert_eq!(index.select(&filter, 0..8), [1, 5]);
        assert_eq!(index.select(&filter, [3, 2, 99, 5, 7]), [3, 7]);
        // The file is cut while it is open.
        fs::write(&path, &file(is_lines)[..300]).unwrap();
        assert!(index.load(7).is_err());
    }
}

/// Whether the capture's index is interrupted at the `at`th question, and no earlier.
fn is_interrupted(path: &Path, at: usize) -> bool {
    let mut asked = 0;
    let opened = CaptureIndex::open(path, || {
        asked += 1;
        asked < at
    });
    matches!(opened, Err(IndexError::Interrupted)) && asked == at
}

#[test]
fn reading_can_be_interrupted_at_each_piece_of_a_file() {
    let place = Scratch::new();
    let path = place.join("capture");
    let events: Vec<Item> = (0..5_000).map(|number| Item::Event(Box::new(event(number)))).collect();
    for is_lines in [true, false] {
        fs::write(&path, file_of(&events, is_lines)).unwrap();
        assert!(is_interrupted(&path, 1) && is_interrupted(&path, 5));
    }
    // What has no event in it is read in pieces too: a long line, empty lines, damage.
    let start = file_of(&[], false);
    for bytes in [vec![b'x'; 1 << 20], vec![b'\n'; 1 << 20], [start, vec![1; 1 << 20]].concat()] {
        fs::write(&path, bytes).unwrap();
        assert!(is_interrupted(&path, 10));
    }
}

#[test]
fn reading_can_be_interrupted_at_each_event_of_a_directory() {
    let place = Scratch::new();
    for number in 0..3 {
        let directory = place.join(format!("act/core_0/{number}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("metadata.txt"), "dtype = int8\nshape = (1)\n").unwrap();
        fs::write(directory.join("tensor_data.bin"), [0]).unwrap();
    }
    // Three directories that have no event, three that have one, and then the events themselves.
    assert!((1..=9).all(|at| is_interrupted(place.path(), at)));
    let index = CaptureIndex::open(place.path(), || true).unwrap();
    assert_eq!((index.len(), index.gaps().len()), (3, 0), "{:?}", index.gaps());
}

#[test]
fn a_file_that_is_cut_meanwhile_ends_where_it_is_cut() {
    let place = Scratch::new();
    let path = place.join("capture");
    let events: Vec<Item> = (0..5_000).map(|number| Item::Event(Box::new(event(number)))).collect();
    for is_lines in [true, false] {
        let bytes = file_of(&events, is_lines);
        for left in [0, 100, 70_000, 200_000, bytes.len() - 20] {
            fs::write(&path, &bytes).unwrap();
            let mut asked = 0;
            let index = CaptureIndex::open(&path, || {
                asked += 1;
                if asked == 2 {
                    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                    file.set_len(left.try_into().unwrap()).unwrap();
                }
                asked < 1_000
            });
            let index = index.unwrap_or_else(|error| panic!("cut to {left} bytes: {error}"));
            // The first piece was read before.
            assert!(index.len() > 100 && index.len() < events.len(), "cut to {left} bytes");
        }
    }
}

#[test]
fn what_has_too_many_events_or_forms_has_no_index() {
    let place = Scratch::new();
    let path = place.join("capture");
    // Three prefixes on each of two cores.
    let limits = |events, forms| IndexLimits { events, forms };
    for is_lines in [true, false] {
        fs::write(&path, file(is_lines)).unwrap();
        let open = |limits| CaptureIndex::open_within(&path, limits, || true);
        assert_eq!(open(limits(8, 6)).unwrap().len(), 8);
        let error = open(limits(7, 6)).unwrap_err();
        assert!(matches!(error, IndexError::TooManyEvents(7)), "{error}");
        assert!(error.to_string().contains("more than 7 events"), "{error}");
        let error = open(limits(8, 5)).unwrap_err();
        assert!(matches!(error, IndexError::TooManyForms(5)), "{error}");
        assert!(error.to_string().contains("more than 5 combinations"), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_to_its_end() {
    let place = Scratch::new();
    let path = place.join("capture");
    for is_lines in [true, false] {
        let bytes = file(is_lines);
        for left in 0..bytes.len() {
            fs::write(&path, &bytes[..left]).unwrap();
            let mut capture = Capture::open(&path).unwrap();
            while let Ok(Some(_)) = capture.next_item() {}
            let rest = std::iter::from_fn(|| capture.next_left()).take(20).count();
            assert!(rest < 20, "cut to {left} bytes, lines: {is_lines}");
        }
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_damaged_file_has_the_events_that_it_has_when_read_whole(
        is_lines in any::<bool>(),
        change in 0..4,
        some in prop::collection::vec(any::<u8>(), 1..60),
        at in any::<prop::sample::Index>(),
    ) {
        let mut bytes = file(is_lines);
        let at = at.index(bytes.len());
        match change {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, some)),
            2 => drop(bytes.drain(at..(at + some.len()).min(bytes.len()))),
            _ => bytes[at] ^= some[0],
        }
        let place = Scratch::new();
        let path = place.join("capture");
        fs::write(&path, bytes).unwrap();
        let expected = read(&path);
        let index = CaptureIndex::open(&path, || true);
        assert_eq!(index.is_ok(), expected.is_some());
        if let (Ok(index), Some(expected)) = (index, expected) {
            // What is damaged in the middle of its data is found when it is loaded.
            let loaded = (0..index.len()).filter_map(|number| index.load(number).ok().flatten());
            let found: Vec<Item> = loaded.map(|event| Item::Event(Box::new(event))).collect();
            let events: Vec<Item> = expected.iter().filter(|item| is_event(item)).cloned().collect();
            assert_eq!(found, events);
            let gaps = expected.len() - events.len();
            assert_eq!(index.gaps().len() + index.len() - found.len(), gaps);
        }
    }
}
