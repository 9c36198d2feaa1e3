//! What is recorded is read again, whatever a crash or a stranger did to the file.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use telltale_harness::{Scratch, wait_until};
use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{SCHEMA_VERSION, Snapshot, SourceError, SourceStatus};

use super::reader::{RecordingError, ReplayError};
use super::writer::{line, member as member_of};
use super::{HEAD, RecordError, Recorder, Recording};

const ROOM: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

fn snapshot(at: u64) -> Snapshot {
    Snapshot { collected_in_ns: 1, closed_processes: at, ..Snapshot::empty(Timestamp(at)) }
}

fn member(snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    member_of(&line(snapshot)?, snapshot.taken_at)
}

fn times(recording: &Recording) -> Vec<u64> {
    recording.frames().iter().map(|frame| frame.at.0).collect()
}

#[test]
fn each_moment_is_found_again_and_gzip_reads_all_of_it() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let mut recorder = Recorder::open(&path, ROOM).unwrap();
    for at in [10, 20, 30] {
        recorder.add(&snapshot(at)).unwrap();
    }
    assert!(matches!(Recorder::open(&path, ROOM), Err(RecordError::Taken(_))));
    drop(recorder);
    let mut recorder = self::recorder(&path);
    recorder.add(&snapshot(40)).unwrap();
    assert_eq!(recorder.frames(), 4);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(times(&recording), [10, 20, 30, 40]);
    for (moment, at) in [(0, 10), (10, 10), (29, 20), (40, 40), (99, 40)] {
        let place = recording.place_at(Timestamp(moment));
        assert_eq!(recording.snapshot(place).unwrap(), snapshot(at), "{moment}");
    }
    let mut text = String::new();
    let file = fs::File::open(&path).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    let lines: Vec<Snapshot> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines, [10, 20, 30, 40].map(snapshot));
}

/// A recorder, also where a child that another test is starting still shares the descriptor of the last one.
fn recorder(path: &Path) -> Recorder {
    let mut opened = None;
    wait_until("the recording to be free", TIMEOUT, || {
        opened = Recorder::open(path, ROOM).ok();
        opened.is_some()
    });
    opened.expect("it was opened")
}

#[test]
fn wherever_a_crash_cuts_it_all_whole_snapshots_are_there_and_more_can_follow() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let whole = [member(&snapshot(10)).unwrap(), member(&snapshot(20)).unwrap()].concat();
    let first = member(&snapshot(10)).unwrap().len();
    for cut in first..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(times(&recording), [10], "{cut}");
        assert_eq!(usize::try_from(recording.torn_bytes()).unwrap(), cut - first);
        recorder(&path).add(&snapshot(30)).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!((times(&recording), recording.torn_bytes()), (vec![10, 30], 0), "{cut}");
        assert_eq!(recording.snapshot(1).unwrap(), snapshot(30));
    }
    fs::write(&path, &whole[..5]).unwrap();
    assert!(matches!(Recording::open(&path), Err(ReplayError::Empty(_))));
}

#[test]
fn a_byte_that_differs_makes_no_other_snapshot() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let first = member(&snapshot(10)).unwrap();
    let whole = [&first[..], &member(&snapshot(20)).unwrap()].concat();
    for at in 0..first.len() {
        for bit in [1, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            fs::write(&path, &bytes).unwrap();
            let Ok(recording) = Recording::open(&path) else { continue };
            for place in 0..recording.frames().len() {
                if let Ok(read) = recording.snapshot(place) {
                    assert!([snapshot(10), snapshot(20)].contains(&read), "byte {at}: {read:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_recording_is_neither_read_nor_written_to() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let mut bomb = HEAD.to_vec();
    bomb.extend(u64::MAX.to_le_bytes());
    bomb.extend(0u64.to_le_bytes());
    for bytes in [&b"# notes of mine\n"[..], b"{\"schema_version\":1}\n", &bomb] {
        fs::write(&path, bytes).unwrap();
        let read = Recording::open(&path).unwrap_err();
        assert!(
            matches!(read, ReplayError::Open { source: RecordingError::Foreign, .. }),
            "{read}"
        );
        let written = Recorder::open(&path, ROOM).unwrap_err();
        assert!(matches!(written, RecordError::Foreign { .. }), "{written}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let directory = Recording::open(scratch.path()).unwrap_err();
    assert!(matches!(directory, ReplayError::Open { source: RecordingError::Kind, .. }));
}

#[test]
fn a_snapshot_that_unpacks_without_end_is_given_up() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let mut encoder = flate2::write::DeflateEncoder::new(
        [&HEAD[..], &[0; 16]].concat(),
        flate2::Compression::fast(),
    );
    for _ in 0..80 {
        encoder.write_all(&[b' '; 1 << 20]).unwrap();
    }
    let mut bytes = encoder.finish().unwrap();
    bytes.extend([0; 8]);
    let length = u64::try_from(bytes.len()).unwrap();
    bytes[HEAD.len()..][..8].copy_from_slice(&length.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let error = Recording::open(&path).unwrap().snapshot(0).unwrap_err();
    assert!(matches!(error, ReplayError::Long { number: 1, .. }), "{error}");
}

#[test]
fn what_no_reader_takes_is_not_written() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let mut recorder = Recorder::open(&path, ROOM).unwrap();
    recorder.add(&snapshot(10)).unwrap();
    let newer = Snapshot { schema_version: SCHEMA_VERSION + 1, ..snapshot(20) };
    assert!(matches!(recorder.add(&newer), Err(RecordError::Unfit { .. })));
    let detail = "x".repeat(64 << 20);
    let error = SourceError { subject: String::new(), reason: Absence::Failed, detail };
    let source = SourceStatus {
        name: String::from("a"),
        duration_ns: 1,
        errors: vec![error],
        errors_dropped: 0,
        notes: Vec::new(),
    };
    let large = Snapshot { sources: vec![source], ..snapshot(20) };
    assert!(matches!(recorder.add(&large), Err(RecordError::Large { .. })));
    assert_eq!(times(&Recording::open(&path).unwrap()), [10]);
}

#[test]
fn what_a_newer_program_recorded_is_not_added_to() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let newer = Snapshot { schema_version: SCHEMA_VERSION + 1, ..snapshot(10) };
    let bytes = member_of(&serde_json::to_vec(&newer).unwrap(), newer.taken_at).unwrap();
    fs::write(&path, &bytes).unwrap();
    let refused = Recorder::open(&path, ROOM).unwrap_err();
    assert!(matches!(refused, RecordError::Other { .. }), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn it_ends_where_it_may_not_grow() {
    let scratch = Scratch::new();
    let path = scratch.join("r");
    let one = u64::try_from(member(&snapshot(10)).unwrap().len()).unwrap();
    let mut recorder = Recorder::open(&path, one * 5 / 2).unwrap();
    recorder.add(&snapshot(10)).unwrap();
    recorder.add(&snapshot(20)).unwrap();
    assert!(matches!(recorder.add(&snapshot(30)), Err(RecordError::Full { .. })));
    assert_eq!(times(&Recording::open(&path).unwrap()), [10, 20]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let link = scratch.join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(Recorder::open(&link, ROOM), Err(RecordError::Link(_))));
    drop(recorder);
    OpenOptions::new().write(true).open(&path).unwrap();
}
