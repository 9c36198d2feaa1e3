//! Files as the tools write them, and as they should not be.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use telltale_harness::Scratch;

use super::*;
use crate::intake::{Scope, WorkerProcess};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::group::GroupId;
use telltale_cluster::observation::Observation;
use telltale_cluster::rank::Rank;

fn intake() -> Intake {
    let intake = Intake::new();
    intake.begin(Scope { epoch: Epoch::new(1), world_size: 4, ranks: 0..4 });
    intake
}

fn observe(intake: &Intake) -> Observation {
    let own = WorkerProcess { rank: Rank(2), pid: std::process::id() };
    intake.observe(Epoch::new(1), &[own]).unwrap()
}

/// Group, rank, entered and finished.
fn progress(intake: &Intake) -> Vec<(GroupId, u32, u64, u64)> {
    let observation = observe(intake);
    let progress = observation.progress.iter();
    progress.map(|one| (one.group, one.rank.0, one.entered, one.finished)).collect()
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn line(id: &str, ranks: u32, time_us: &str) -> String {
    let pid = std::process::id();
    format!(
        r#"{{"header":{{"id":"{id}","rank":1,"n_ranks":{ranks},"nnodes":1}},"metadata":{{"inspector_output_format_version":"v4.0","dump_timestamp_us":1748030377748202,"hostname":"h","pid":{pid}}},"coll_perf":{{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":{time_us},"coll_algobw_gbs":277.1,"coll_busbw_gbs":485.1}}}}"#
    )
}

#[test]
fn the_inspector_s_files_are_followed_from_their_ends() {
    let place = Scratch::new();
    let old = place.join("h-pid1.log");
    append(&old, &format!("{}\n", line("0xa", 2, "1")));
    let mut reader = FileReader::new(Format::Inspector, place.path());
    let intake = intake();
    // Whose process it is is known from an observation on.
    assert_eq!(progress(&intake), []);
    append(&old, &line("0xa", 2, "61974"));
    reader.poll(&intake);
    assert_eq!(reader.counts().read, 0, "the line is not whole");
    append(&old, "\nnonsense\n");
    append(&place.join("h-pid2.log"), &format!("{}\n\n", line("0xb", 4, "7.6")));
    append(&place.join(".hidden"), &format!("{}\n", line("0xc", 4, "5")));
    std::os::unix::fs::symlink(&old, place.join("link")).unwrap();
    reader.poll(&intake);
    reader.poll(&intake);
    let expected = ReaderCounts { read: 2, malformed: 1, ..ReaderCounts::default() };
    assert_eq!(reader.counts(), expected);
    // The communicator of four is of all ranks, but not in their order, as the process shows.
    let group = |id| GroupId::of_name(id);
    let mut expected = [(group("0xa"), 2, 1, 1), (group("0xb"), 2, 1, 1)];
    expected.sort_unstable();
    assert_eq!(progress(&intake), expected);
}

#[test]
fn a_file_that_begins_again_is_read_from_its_beginning() {
    let place = Scratch::new();
    let path = place.join("one.log");
    let mut reader = FileReader::new(Format::Inspector, &path);
    let intake = intake();
    append(&path, &format!("{0}\n{0}\n", line("0xa", 4, "5")));
    reader.poll(&intake);
    std::fs::write(&path, format!("{}\n", line("0xa", 4, "5"))).unwrap();
    reader.poll(&intake);
    assert_eq!(reader.counts().read, 3);
    std::fs::remove_file(&path).unwrap();
    reader.poll(&intake);
    assert_eq!(reader.counts().read, 3);
}

#[test]
fn a_poll_that_finds_more_than_the_queue_holds_loses_nothing() {
    let place = Scratch::new();
    let mut reader = FileReader::new(Format::Inspector, place.path());
    let intake = intake();
    let (files, lines) = (14, 2400);
    let text = format!("{}\n", line("0xa", 4, "5")).repeat(lines);
    (0..files).for_each(|file| append(&place.join(format!("{file}.log")), &text));
    reader.poll(&intake);
    let read = u64::try_from(files * lines).unwrap();
    assert_eq!(reader.counts(), ReaderCounts { read, ..ReaderCounts::default() });

    let place = Scratch::new();
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = self::intake();
    let (ranks, entries) = (3, 12_000);
    let numbers = 1..=entries;
    let ended = numbers.map(|number| (number, "gloo:all_reduce", "completed", "3000000"));
    let text = dump(&ended.collect::<Vec<_>>());
    (0..ranks).for_each(|rank| append(&place.join(format!("trace_{rank}")), &text));
    reader.poll(&intake);
    // Of each rank also its group.
    let read = ranks * (entries + 1);
    assert_eq!(reader.counts(), ReaderCounts { read, ..ReaderCounts::default() });
    let progress = progress(&intake);
    let of_all = progress.iter().map(|(_, rank, _, finished)| (*rank, *finished));
    assert_eq!(of_all.collect::<Vec<_>>(), [(0, entries), (1, entries), (2, entries)]);
}

#[test]
fn what_the_inspector_would_not_write_is_counted() {
    let place = Scratch::new();
    let path = place.join("one.log");
    let mut reader = FileReader::new(Format::Inspector, &path);
    let times = ["-1", "1e300", "\"5\"", "null"];
    times.iter().for_each(|time| append(&path, &format!("{}\n", line("0xa", 4, time))));
    append(&path, "{}\n[]\n");
    append(&path, &"x".repeat(5 << 20));
    (0..6).for_each(|_| reader.poll(&intake()));
    let counts = reader.counts();
    assert_eq!((counts.read, counts.malformed), (0, 6));
    assert!(counts.skipped_bytes >= 4 << 20, "{counts:?}");
}

/// A dump with these entries: number, name, state, and when it was noticed to have ended.
fn dump(entries: &[(u64, &str, &str, &str)]) -> String {
    let entries = entries.iter().map(|(number, name, state, ended)| {
        format!(
            r#"{{"record_id":{number},"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":{number},"p2p_seq_id":0,"op_id":1,"profiling_name":"{name}","time_created_ns":1000000,"duration_ms":null,"input_sizes":[[3,4]],"input_dtypes":["Float"],"output_sizes":[[3,4]],"output_dtypes":["Float"],"state":"{state}","time_discovered_started_ns":null,"time_discovered_completed_ns":{ended},"retired":false,"timeout_ms":600000,"is_p2p":false}}"#
        )
    });
    let entries: Vec<String> = entries.collect();
    format!(
        r#"{{"version":"2.10","pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"}}}},"pg_status":{{}},"entries":[{}]}}"#,
        entries.join(",")
    )
}

#[test]
fn an_operation_of_the_flight_recorder_is_reported_when_it_begins_and_when_it_ends() {
    let place = Scratch::new();
    let path = place.join("gloo_trace_rank_3.json");
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = intake();
    let all = GroupId::of_name("0");
    let send = (5, "gloo:send 3->1", "scheduled", "null");
    std::fs::write(&path, dump(&[(4, "gloo:all_reduce", "started", "null"), send])).unwrap();
    reader.poll(&intake);
    reader.poll(&intake);
    let observation = observe(&intake);
    assert_eq!(observation.progress[0].sends_to, [Rank(1)]);
    assert_eq!(progress(&intake), [(all, 3, 4, 0)]);
    let ended = [
        (4, "gloo:all_reduce", "completed", "3000000"),
        (5, "gloo:send 3->1", "completed", "2000000"),
        (6, "gloo:broadcast", "completed", "2000000"),
    ];
    std::fs::write(&path, dump(&ended)).unwrap();
    reader.poll(&intake);
    assert_eq!(progress(&intake), [(all, 3, 6, 6)]);
    assert_eq!(observe(&intake).progress[0].sends_to, []);
    // The same dump, written again.
    std::fs::write(&path, format!("{} ", dump(&ended))).unwrap();
    reader.poll(&intake);
    assert_eq!(progress(&intake), [(all, 3, 6, 6)]);
    // What the dump has lost meanwhile counts by the numbers of what came later.
    std::fs::write(&path, dump(&[(99, "gloo:barrier", "completed", "2000000")])).unwrap();
    reader.poll(&intake);
    assert_eq!(progress(&intake), [(all, 3, 99, 99)]);
    // A new process's records restart; without numbers of its own it is counted.
    std::fs::write(&path, dump(&[(0, "gloo:barrier", "completed", "2000000")])).unwrap();
    reader.poll(&intake);
    assert_eq!(progress(&intake), [(all, 3, 100, 100)]);
    assert_eq!(reader.counts().malformed, 0);
}

#[test]
fn a_transfer_of_the_flight_recorder_holds_the_wait_for_its_peer() {
    let place = Scratch::new();
    let path = place.join("trace_rank_3.json");
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = intake();
    let ended = (1..=60).map(|number| {
        let operation = ["nccl:send 3->1", "nccl:recv 3<-2"][usize::from(number % 2 == 0)];
        (number, operation, "completed", "2000000")
    });
    std::fs::write(&path, dump(&ended.collect::<Vec<_>>())).unwrap();
    reader.poll(&intake);
    let edges = observe(&intake).edges;
    let mut of: Vec<(u32, bool)> = edges
        .iter()
        .map(|edge| (edge.key.peer.0, edge.window.overlapped == edge.window.count))
        .collect();
    of.sort_unstable();
    assert_eq!(of, [(1, true), (2, true)]);
}

/// The dump of rank 1 of 2 that PyTorch 2.15.0 made with Gloo: three all-reduces, each with a send behind
/// it, a broadcast in a group of its own, a barrier.
const GLOO: &str = include_str!("tests/pytorch_2_15_gloo_trace_rank_1.json");

#[test]
fn gloo_s_operations_end_when_they_are_retired() {
    let place = Scratch::new();
    let path = place.join("trace_rank_1.json");
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = intake();
    std::fs::write(&path, GLOO).unwrap();
    reader.poll(&intake);
    let (all, own) = (GroupId::of_name("0"), GroupId::of_name("1"));
    let mut expected = [(all, 1, 4, 4), (own, 1, 1, 1)];
    expected.sort_unstable();
    assert_eq!(progress(&intake), expected);
    assert_eq!(observe(&intake).waits, [], "nobody says how long they took");
    assert_eq!(reader.counts(), ReaderCounts { read: 5, ..ReaderCounts::default() });
    // The barrier has begun.
    let (before, barrier) = GLOO.rsplit_once(r#""retired":true"#).unwrap();
    std::fs::write(&path, format!(r#"{before}"retired":false{barrier}"#)).unwrap();
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = self::intake();
    reader.poll(&intake);
    assert!(progress(&intake).contains(&(all, 1, 4, 3)));
}

/// A dump as PyTorch 2.15.0 itself writes it, of the same operations: a pickle.
const GLOO_PICKLE: &[u8] = include_bytes!("tests/pytorch_2_15_gloo_trace_rank_1.pickle");

#[test]
fn what_pytorch_writes_by_itself_is_read_like_its_json() {
    let place = Scratch::new();
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = intake();
    std::fs::write(place.join("trace_rank_1"), GLOO_PICKLE).unwrap();
    reader.poll(&intake);
    let mut expected = [(GroupId::of_name("0"), 1, 4, 4), (GroupId::of_name("1"), 1, 1, 1)];
    expected.sort_unstable();
    assert_eq!(progress(&intake), expected);
    assert_eq!(reader.counts(), ReaderCounts { read: 5, ..ReaderCounts::default() });
    // One that is still written counts once it is whole.
    std::fs::write(place.join("trace_rank_0"), &GLOO_PICKLE[..900]).unwrap();
    reader.poll(&intake);
    assert_eq!((reader.counts().read, reader.counts().malformed), (5, 1));
    std::fs::write(place.join("trace_rank_0"), GLOO_PICKLE).unwrap();
    reader.poll(&intake);
    assert_eq!(reader.counts().read, 10);
}

#[test]
fn what_nccl_has_retired_and_not_completed_goes_on() {
    let place = Scratch::new();
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    for (rank, library) in (0..).zip(["nccl", "nccl2", "ncclx"]) {
        let entry = dump(&[(1, &format!("{library}:all_reduce"), "started", "null")]);
        let timed_out = entry.replace(r#""retired":false"#, r#""retired":true"#);
        std::fs::write(place.join(format!("trace_{rank}")), timed_out).unwrap();
    }
    let intake = intake();
    reader.poll(&intake);
    let group = GroupId::of_name("0");
    assert_eq!(progress(&intake), [(group, 0, 1, 0), (group, 1, 1, 0), (group, 2, 1, 0)]);
}

#[test]
fn what_the_flight_recorder_would_not_write_is_counted() {
    let place = Scratch::new();
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let write = |name: &str, text: &str| std::fs::write(place.join(name), text).unwrap();
    write("no_number.json", &dump(&[]));
    // Half a pickle.
    write("trace_0", "\u{80}\u{4}");
    write("trace_1", r#"{"entries":5}"#);
    let good = dump(&[(1, "gloo:all_reduce", "completed", "3000000")]);
    write("trace_2", &good.replace("[0, 1, 2, 3]", "[0, 1]"));
    write("a_0", &good.replace("[0, 1, 2, 3]", "0, 1"));
    write("b_1", &good.replace("gloo:", ""));
    // It ended before it began.
    write("trace_3", &dump(&[(1, "gloo:all_reduce", "completed", "1")]));
    reader.poll(&intake());
    assert_eq!((reader.counts().malformed, reader.counts().dropped), (7, 0));
}

/// What the last of these operations of rank 3 is, reported by a reader, and how many are not verified.
fn shown(intake: &Intake) -> (Vec<(u32, u64, u64)>, u64) {
    let progress = progress(intake).into_iter();
    let reported = progress.map(|(_, rank, entered, finished)| (rank, entered, finished));
    (reported.collect(), intake.view().counts.unverified)
}

#[test]
fn what_others_may_have_written_is_shown_and_is_no_evidence() {
    let mode = |path: &Path, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).unwrap();
    };
    let ended = |number| dump(&[(number, "gloo:barrier", "completed", "2000000")]);
    for (of_directory, of_file, is_evidence) in [
        (0o755, 0o644, true),
        (0o1777, 0o600, true),
        (0o700, 0o666, false),
        (0o1777, 0o646, false),
        (0o777, 0o600, false),
        // The group is the owner's own here.
        (0o775, 0o664, true),
    ] {
        let place = Scratch::new();
        let directory = place.join("dumps");
        std::fs::create_dir(&directory).unwrap();
        mode(&directory, of_directory);
        let path = directory.join("trace_3");
        std::fs::write(&path, ended(4)).unwrap();
        mode(&path, of_file);
        let intake = intake();
        FileReader::new(Format::FlightRecorder, &directory).poll(&intake);
        let expected = if is_evidence { (vec![(3, 4, 4)], 0) } else { (vec![], 2) };
        assert_eq!(shown(&intake), expected, "{of_directory:o} {of_file:o}");
        // One that is read by its own name, in the same way, line by line.
        let lines = directory.join("one.log");
        append(&lines, "");
        mode(&lines, of_file);
        let mut reader = FileReader::new(Format::Inspector, &lines);
        append(&lines, &format!("{}\n", line("0xa", 4, "5")));
        let intake = self::intake();
        assert_eq!(progress(&intake), []);
        reader.poll(&intake);
        assert_eq!(shown(&intake).1, u64::from(!is_evidence), "{of_directory:o} {of_file:o}");
    }
}

#[test]
fn files_of_another_user_change_nothing_of_the_workers_files() {
    if !telltale_harness::needs_root("readers::files_of_another_user_change_nothing") {
        return;
    }
    let strange = |path: &Path| std::os::unix::fs::chown(path, Some(61_054), None).unwrap();
    let place = Scratch::new();
    let own = place.join("nccl_trace_rank_3");
    let ended = |number| dump(&[(number, "gloo:barrier", "completed", "2000000")]);
    std::fs::write(&own, ended(4)).unwrap();
    // It says of the same rank what is far ahead, and others take up all there is room for.
    let other = place.join("a_trace_rank_3");
    std::fs::write(&other, ended(1_000)).unwrap();
    strange(&other);
    for number in 0..files::MAX_FILES {
        let path = place.join(format!("b_{number}"));
        std::fs::write(&path, "").unwrap();
        strange(&path);
    }
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = intake();
    reader.poll(&intake);
    assert_eq!(shown(&intake).0, [(3, 4, 4)]);
    assert!(reader.counts().files_left_out > 900, "{:?}", reader.counts());
    std::fs::write(&own, ended(5)).unwrap();
    reader.poll(&intake);
    assert_eq!(shown(&intake).0, [(3, 5, 5)]);
    // A directory of another user: who owns it can put any file in another's place.
    strange(place.path());
    std::fs::write(&own, ended(6)).unwrap();
    reader.poll(&intake);
    assert_eq!(shown(&intake).0, [(3, 5, 5)]);
}

#[test]
fn what_a_shared_group_may_have_written_is_no_evidence() {
    if !telltale_harness::needs_root("readers::what_a_shared_group_may_have_written") {
        return;
    }
    const SHARED: u32 = 61_057;
    let own = rustix::process::geteuid().as_raw();
    let owned = |path: &Path, group: u32, mode: u32| {
        std::os::unix::fs::chown(path, Some(own), Some(group)).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let text = dump(&[(4, "gloo:barrier", "completed", "2000000")]);
    for (of_directory, of_file, group, is_evidence) in [
        (0o755, 0o644, SHARED, true),
        (0o755, 0o664, SHARED, false),
        (0o775, 0o644, SHARED, false),
        (0o1775, 0o644, SHARED, true),
        (0o775, 0o664, own, true),
    ] {
        let place = Scratch::new();
        let directory = place.join("dumps");
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("trace_3");
        std::fs::write(&path, &text).unwrap();
        owned(&path, group, of_file);
        owned(&directory, group, of_directory);
        let intake = intake();
        FileReader::new(Format::FlightRecorder, &directory).poll(&intake);
        let expected = if is_evidence { (vec![(3, 4, 4)], 0) } else { (vec![], 2) };
        assert_eq!(shown(&intake), expected, "{of_directory:o} {of_file:o} {group}");
    }
}

#[test]
fn names_of_another_user_hide_no_file_that_was_found_and_are_not_all_read() {
    if !telltale_harness::needs_root("readers::names_of_another_user_hide_no_file") {
        return;
    }
    let place = Scratch::new();
    let ended = |number| dump(&[(number, "gloo:barrier", "completed", "2000000")]);
    let own = |rank: u32| place.join(format!("nccl_trace_rank_{rank}"));
    (0..4).for_each(|rank| std::fs::write(own(rank), ended(4)).unwrap());
    let mut reader = FileReader::new(Format::FlightRecorder, place.path());
    let intake = intake();
    reader.poll(&intake);
    let ranks = |number| (0..4).map(|rank| (rank, number, number)).collect::<Vec<_>>();
    assert_eq!(shown(&intake).0, ranks(4));
    // As many names again as are checked, all of one file.
    let strange = place.join("a");
    std::fs::write(&strange, "").unwrap();
    std::os::unix::fs::chown(&strange, Some(61_054), None).unwrap();
    for number in 0..2 * files::MAX_NAMES {
        let name = place.join(format!("b_{number}"));
        // A file has so many names at most on some file systems.
        if number % 16_384 == 0 {
            std::fs::write(&name, "").unwrap();
            std::os::unix::fs::chown(&name, Some(61_054), None).unwrap();
        } else {
            let first = place.join(format!("b_{}", number / 16_384 * 16_384));
            std::fs::hard_link(first, name).unwrap();
        }
    }
    (0..4).for_each(|rank| std::fs::write(own(rank), ended(5)).unwrap());
    reader.poll(&intake);
    assert_eq!(shown(&intake).0, ranks(5));
    let left_out = reader.counts().files_left_out;
    let most = u64::try_from(files::MAX_NAMES).unwrap() + 1;
    assert!(left_out <= most, "no more names are read than that: {left_out}");
}
