//! `telltale events`: captures as the default consumer writes them, listed, filtered, followed and
//! converted.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_debug_stream::capture::{Capture, Item};
use telltale_debug_stream::sink::{DefaultConsumer, Saved, write_json_line};
use telltale_debug_stream::{
    Event, EventKind, Losses, NextEvent, Stream, StreamOptions, TensorEvent, TextStyle,
};
use telltale_harness::{Scratch, python_with, wait_until};

use crate::cli::command::{Running, Said, TIMEOUT, said, telltale};

/// Publishes through a stream what a kernel would, and has the default consumer keep it.
fn capture(root: &Path, iterations: u16) {
    for core in 0..2 {
        let stream = Stream::new(core, StreamOptions::default());
        let publisher = stream.publisher();
        let mut consumer = stream.connect().unwrap();
        let mut keeper =
            DefaultConsumer::new(root.to_owned(), Saved::BytesAndText, TextStyle::default());
        for iteration in 0..iterations {
            let loss = (4.0 / f32::from(iteration + 1)).to_le_bytes();
            let (prefix, shape) = ("loss", &[1][..]);
            let _ = publisher.tensor(&TensorEvent {
                prefix,
                dtype: "float32",
                shape,
                data: &loss,
                pipe: 0,
            });
            let (prefix, shape) = ("layer/0\x1b[2J", &[2, 2][..]);
            let data = [1, 0, 2, 0, 0xff, 0xff, 4, 0];
            let _ = publisher.tensor(&TensorEvent {
                prefix,
                dtype: "int16",
                shape,
                data: &data,
                pipe: 0,
            });
        }
        while let Some(next) = consumer.try_next().unwrap() {
            keeper.take(next, &mut Vec::new(), &mut Vec::new()).unwrap();
        }
    }
}

/// Events as lines of JSON, with a loss, something malformed and half a line.
fn lines() -> Vec<u8> {
    let event = Event {
        kind: EventKind::Tensor,
        sequence: 0,
        time_ns: 5_000_000_000,
        iteration: Some(0),
        core: 3,
        pipe: 0,
        prefix: "grad".to_owned(),
        dtype: "bfloat16".to_owned(),
        shape: vec![3],
        data: vec![0x80, 0x3f, 0xc0, 0x7f, 0x80, 0x7f],
    };
    let later = Event { time_ns: 5_250_000_000, sequence: 13, ..event.clone() };
    let malformed = Event { shape: vec![9], iteration: Some(1), ..later.clone() };
    let text = Event {
        kind: EventKind::Text,
        data: b"phase 2\x07".to_vec(),
        dtype: String::new(),
        shape: Vec::new(),
        ..later
    };
    let mut lines = Vec::new();
    for next in [
        NextEvent::Event(event),
        NextEvent::Lost(Losses { events: 12, ..Losses::default() }),
        NextEvent::Event(malformed),
        NextEvent::Event(text),
    ] {
        let _ = write_json_line(&mut lines, &next, 100).unwrap();
    }
    lines
}

fn events<A: AsRef<OsStr>>(capture: &Path, arguments: &[A]) -> Said {
    said(telltale().arg("events").arg(capture).args(arguments))
}

/// The lines of events, without the heading and the times.
fn rows(said: &Said) -> Vec<String> {
    let rows = said.out.lines().skip(1);
    rows.map(|row| row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_the_default_consumer_kept_is_listed_in_order() {
    let place = Scratch::new();
    capture(place.path(), 2);
    let said = events::<&str>(place.path(), &[]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.starts_with("       TIME CORE PREFIX#ITERATION"), "{}", said.out);
    let of_core = |core: u32| {
        [
            format!("{core} loss#0 float32 (1) 4 B 4 4 4"),
            format!("{core} layer/0?[2J#0 int16 (2,2) 8 B -1 1.5 4"),
            format!("{core} loss#1 float32 (1) 4 B 2 2 2"),
            format!("{core} layer/0?[2J#1 int16 (2,2) 8 B -1 1.5 4"),
        ]
    };
    let mut found = rows(&said);
    // The coarse clock may or may not have gone on between the cores.
    found.sort_by_key(|row| row.starts_with('1'));
    assert_eq!(found, [of_core(0), of_core(1)].concat());
    let one = events(place.path(), &["--core", "1", "--prefix", "lo?s", "--iteration", "1-"]);
    assert_eq!(rows(&one), ["1 loss#1 float32 (1) 4 B 2 2 2"]);
}

#[test]
fn each_condition_leaves_out_what_it_says() {
    let place = Scratch::new();
    capture(place.path(), 9);
    for (conditions, expected) in [
        (&["--core", "0"][..], 18),
        (&["--core", "1-,7"], 18),
        (&["--prefix", "loss"], 18),
        (&["--prefix", "l*", "--prefix", "none"], 36),
        (&["--dtype", "int16,float16"], 18),
        (&["--iteration", "-2,8"], 16),
        (&["--type", "tensor"], 36),
        (&["--type", "text,300"], 0),
        (&["--every", "4"], 12),
        (&["--every", "4", "--core", "1", "--prefix", "loss"], 3),
        (&["--last", "5"], 5),
        (&["--last", "0"], 0),
        (&["--since", "100"], 0),
    ] {
        let said = events(place.path(), conditions);
        assert_eq!((said.status, rows(&said).len()), (Some(0), expected), "{conditions:?}");
    }
}

#[test]
fn losses_malformed_events_and_garbage_are_shown_in_their_place() {
    let place = Scratch::new();
    let path = place.join(OsStr::from_bytes(b"events\xff"));
    let mut text = lines();
    text.extend_from_slice(b"garbage \x1b[31m\n{\"kind\":");
    fs::write(&path, &text).unwrap();
    let expected = "       \
    TIME CORE PREFIX#ITERATION         DTYPE    SHAPE          BYTES       MIN      MEAN       MAX
   0.000000    3 grad#0                   bfloat16 (3)              6 B         1         1         1 1 nan 1 inf
-- 12 events lost here: full
   0.250000    3 grad#1                   bfloat16 (9)              6 B its numbers are not in this capture
   0.250000    3 grad#0                   phase 2?
-- unreadable: line 5: expected value at column 1
-- unreadable: line 6: EOF while parsing a value at column 8
";
    let file = events::<&str>(&path, &[]);
    assert_eq!((file.status, file.out.as_str()), (Some(1), expected));
    assert_eq!(file.err, "telltale: 3 events, 12 lost, 2 places unreadable\n");
    let mut command = telltale();
    let input = command.args(["events", "-"]).stdin(File::open(&path).unwrap());
    assert_eq!(said(input).out, expected);
    fs::write(&path, b"nothing but text\n").unwrap();
    assert_eq!(events::<&str>(&path, &[]).status, Some(2));
    fs::write(&path, [&text[..], b"\0\x01\xff\n7\n", &lines()].concat()).unwrap();
    let damaged = events::<&str>(&path, &[]);
    assert_eq!(damaged.err, "telltale: 6 events, 24 lost, 3 places unreadable\n");
    assert!(
        damaged.out.contains("line 7: invalid type: integer `7`, expected an object at column 1")
    );
}

#[test]
fn a_capture_without_what_is_wanted_reports_it() {
    let place = Scratch::new();
    let empty = events::<&str>(place.path(), &[]);
    assert_eq!((empty.status, empty.out.as_str()), (Some(0), ""));
    assert!(empty.err.starts_with("telltale: there is no event in /"), "{}", empty.err);
    fs::write(place.join("empty"), b"").unwrap();
    let mut command = telltale();
    let input = command.args(["events", "-"]).stdin(File::open(place.join("empty")).unwrap());
    assert_eq!(said(input).err, "telltale: there is no event in standard input\n");
    capture(place.path(), 1);
    let other = events(place.path(), &["--prefix", "other"]);
    assert_eq!((other.status, other.out.as_str()), (Some(0), ""));
    assert!(other.err.ends_with(" has 4 events, of which none is as wanted\n"), "{}", other.err);
    assert_eq!(events(place.path(), &["--last", "0"]).err, "");
}

#[test]
fn numbers_as_large_as_can_be_end_nothing() {
    let place = Scratch::new();
    let path = place.join("events");
    let most = u64::MAX;
    let event = format!(
        r#"{{"kind":"tensor","type":1,"sequence":{most},"time_ns":{most},"iteration":{most},
        "core":4294967295,"bytes":{most},"dtype":"int8","shape":[{most},2],"prefix":"",
        "statistics":{{"min":-1e308,"max":1e308,"nan":{most},"inf":{most},"zero":{most}}}}}"#
    );
    let lost = format!(r#"{{"kind":"lost","events":{most},"bytes":{most},"memory":{most}}}"#);
    let missing = format!(r#"{{"kind":"missing","events":{most}}}"#);
    let lines = [&event.replace('\n', ""), &lost, &missing].map(|line| format!("{line}\n"));
    fs::write(&path, lines.concat().repeat(2)).unwrap();
    let own = path.to_str().unwrap();
    for more in [&["--stats", "--print"][..], &["--summary"], &["--json"], &["--last", "1"]] {
        let said = events(&path, more);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{more:?}");
        assert!(said.out.contains("308"), "{more:?}: {}", said.out);
    }
    let diff = events(&path, &["--diff", own]);
    assert_eq!(diff.status, Some(1), "their numbers are nowhere: {diff:?}");
}

#[test]
fn numbers_statistics_summaries_and_json_are_shown_as_asked() {
    let place = Scratch::new();
    capture(place.path(), 3);
    let last = ["--core", "0", "--prefix", "layer*", "--last", "1"];
    let printed = events(place.path(), &[&last[..], &["--print", "--stats"]].concat()).out;
    let below: Vec<&str> = printed.lines().skip(2).map(str::trim).collect();
    assert_eq!(below, ["std 1.80278, 0 zero, 0 nan, 0 inf", "[[ 1  2]", "[-1  4]]"]);
    let cut = ["--print", "--threshold", "2", "--edge-items", "0"];
    assert!(events(place.path(), &[&last[..], &cut].concat()).out.ends_with("[...]\n"));
    let json = events(place.path(), &[&last[..], &["--json", "--print"]].concat()).out;
    let line: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&line["version"], &line["values"]), (&1.into(), &serde_json::json!([1, 2, -1, 4])));
    let again = said(telltale().args(["events", "-", "--json", "--print"]).stdin({
        fs::write(place.join("line"), &json).unwrap();
        File::open(place.join("line")).unwrap()
    }));
    assert_eq!(again.out, json, "what is written is read");
    fs::remove_file(place.join("line")).unwrap();
    let summary = events(place.path(), &["--summary"]);
    let mut rows = rows(&summary);
    assert_eq!(rows.pop().unwrap(), "events");
    assert_eq!(rows.len(), 4);
    let groups = events(place.path(), &["--summary", "--json"]).out;
    let groups: Vec<serde_json::Value> =
        groups.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&groups[1]["prefix"], &groups[1]["events"]), (&"loss".into(), &3.into()));
    assert_eq!((&groups[1]["max"], &groups[4]["events"]), (&4.0.into(), &12.into()));
}

#[test]
fn what_is_converted_is_whole_and_never_replaces_unasked() {
    let place = Scratch::new();
    let dumps = place.join("dumps");
    capture(&dumps, 2);
    let convert = |from: &Path, form: &str, out: &Path, more: &[&str]| {
        let form = ["--convert", form, "--output"].map(OsStr::new);
        let more = more.iter().map(OsStr::new);
        let arguments: Vec<&OsStr> =
            form.into_iter().chain([out.as_os_str()]).chain(more).collect();
        events(from, &arguments)
    };
    let listing = events::<&str>(&dumps, &["--print"]).out;
    for form in ["raw", "jsonl"] {
        let out = place.join(form);
        let reported = convert(&dumps, form, &out, &[]);
        assert_eq!((reported.status, reported.err.as_str()), (Some(0), ""), "{reported:?}");
        assert!(reported.out.starts_with("8 events written to"), "{reported:?}");
        assert_eq!(events(&out, &["--print"]).out, listing, "{form}");
        let before = fs::read(&out).unwrap();
        convert(&dumps, form, &out, &["--last", "1"]).complains(2, &["exists", "--force"]);
        assert_eq!(fs::read(&out).unwrap(), before);
        assert_eq!(convert(&dumps, form, &out, &["--last", "1", "--force"]).status, Some(0));
        assert_eq!(events::<&str>(&out, &[]).out.lines().count(), 2);
    }
    let text = convert(&dumps, "text", Path::new("-"), &[]);
    assert_eq!(text.out, events(&dumps, &["--print", "--stats"]).out);
    for form in ["npy", "safetensors"] {
        let out = place.join(form);
        assert_eq!(convert(&dumps, form, &out, &[]).status, Some(0));
        let file = out.join(format!("layer%2f0%1b[2J/core_1/1.{form}"));
        let whole = fs::read(&file).unwrap();
        assert!(whole.ends_with(&[1, 0, 2, 0, 0xff, 0xff, 4, 0]), "{form}");
        convert(&dumps, form, &out, &[]).complains(2, &["exists", "--force"]);
        fs::write(out.join("mine"), "").unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(convert(&dumps, form, &out, &["--force"]).status, Some(0));
        assert_eq!(fs::read(&file).unwrap(), whole);
        assert!(out.join("mine").exists());
    }
    let left: Vec<_> =
        fs::read_dir(place.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|name| name.as_bytes().starts_with(b".")), "{left:?}");
}

#[test]
fn what_cannot_be_read_or_written_is_reported_in_one_sentence() {
    let place = Scratch::new();
    let path = |name: &str| place.join(name).to_str().unwrap().to_owned();
    fs::write(path("lines"), lines()).unwrap();
    fs::write(path("numpy"), b"\x93NUMPY\x01\0v\0").unwrap();
    let lines = path("lines");
    let none = path("none/x");
    let cases: [(&[&str], &[&str]); 5] = [
        (&[&path("missing")], &["missing", "No such file", "--follow"]),
        (&[&path("numpy")], &["numpy: this is no capture", "lines of JSON"]),
        (&["/dev/null"], &["neither a file nor a directory"]),
        (&[&lines, "--convert", "raw", "-o", &none], &["none/x", "No such file", "-o"]),
        (&[&lines, "--convert", "npy", "-o", &lines], &["not a directory", "-o"]),
    ];
    for (arguments, words) in cases {
        said(telltale().arg("events").args(arguments)).complains(2, words);
    }
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for more in [&["--convert", "text", "-o", "-"][..], &["--summary"], &["--json"]] {
        let reported = said(telltale().arg("events").arg(&lines).args(more).stdout(full()));
        reported.complains(2, &["standard output", "No space left"]);
    }
}

#[test]
fn captures_are_compared_event_by_event() {
    let place = Scratch::new();
    let [first, second] = ["first", "second"].map(|name| place.join(name));
    capture(&first, 2);
    capture(&second, 2);
    let diff =
        |more: &[&str]| events(&first, &[&["--diff", second.to_str().unwrap()], more].concat());
    let same = diff(&[]);
    assert_eq!((same.status, same.out.as_str()), (Some(0), "8 events the same\n"));
    let changed = second.join("layer%2f0%1b[2J/core_1/1/tensor_data.bin");
    fs::write(changed, [1, 0, 2, 0, 0xff, 0xff, 6, 0]).unwrap();
    fs::remove_dir_all(second.join("loss/core_0/1")).unwrap();
    let expected = "\
CORE PREFIX#ITERATION         SHAPE         DIFFER   MAX ABS   MAX REL FIRST AT
   0 loss#1                   (1)        only in the first
   1 layer/0?[2J#1            (2,2)              1         2  0.333333 [1,1]
6 events the same, 1 different, 1 only in the first
";
    let different = diff(&[]);
    let mut lines: Vec<&str> = different.out.lines().collect();
    // The coarse clock may or may not have gone on between the cores.
    lines[1..3].sort_unstable();
    assert_eq!((different.status, lines.join("\n") + "\n"), (Some(1), expected.to_owned()));
    assert_eq!(diff(&["--prefix", "layer*", "--tolerance", "2"]).status, Some(0));
    // Nothing distinguishes these but their order.
    let twice = |texts: [&str; 2]| {
        let lines = texts.map(|text| {
            format!(r#"{{"kind":"text","type":2,"prefix":"note","text":"{text}"}}"#) + "\n"
        });
        let path = place.join(texts.concat());
        fs::write(&path, lines.concat()).unwrap();
        path
    };
    let (one, other) = (twice(["a", "b"]), twice(["c", "b"]));
    let found = events(&one, &[OsStr::new("--diff"), other.as_os_str()]);
    assert!(found.out.ends_with("1 event the same, 1 different\n"), "{}", found.out);
    let json = diff(&["--json", "--core", "1"]).out;
    let line: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&line["max_abs"], &line["first_at"]), (&2.0.into(), &3.into()));
}

#[test]
fn nothing_is_left_of_what_failed_or_was_interrupted() {
    let place = Scratch::new();
    let (out, whole) = (place.join("out"), lines());
    fs::write(place.join("lines"), whole.repeat(200)).unwrap();
    let too_large = "trap '' XFSZ; ulimit -f 8; exec \"$0\" events \"$1\" --convert raw -o \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", too_large, env!("CARGO_BIN_EXE_telltale")]);
    let failed = said(command.arg(place.join("lines")).arg(&out));
    failed.complains(2, &["out failed", "File too large", "-o"]);
    for (form, out) in [("raw", &out), ("npy", &out)] {
        let mut command = telltale();
        let arguments = ["events", "-", "--convert", form, "-o"];
        command.args(arguments).arg(out).stdin(Stdio::piped());
        let mut running = Running::start(&mut command);
        let mut input = running.child.child().stdin.take().unwrap();
        input.write_all(&whole).unwrap();
        let begun = || fs::read_dir(place.path()).unwrap().count() == 2;
        wait_until("the conversion to begin", TIMEOUT, begun);
        running.child.interrupt();
        assert_eq!(running.status(), Some(2));
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "the lines alone");
}

#[test]
fn a_directory_that_comes_later_is_followed_until_ctrl_c() {
    let place = Scratch::new();
    let dumps = place.join("dumps");
    let mut command = telltale();
    let mut follower =
        Running::start(command.arg("events").arg(&dumps).args(["-f", "--core", "1"]));
    capture(&dumps, 1);
    assert!(follower.line().contains("PREFIX"));
    let mut found = [follower.line(), follower.line()];
    found.sort();
    assert!(found[0].contains("layer/0") && found[1].contains("loss#0"), "{found:?}");
    capture(&place.join("dumps/more"), 2);
    for _ in 0..4 {
        let line = follower.line();
        assert!(line.contains("loss#") || line.contains("layer/0?"), "{line}");
    }
    follower.child.interrupt();
    assert_eq!(follower.status(), Some(0));
    assert_eq!(follower.rest(), [""; 0]);
}

#[test]
fn a_file_that_grows_is_truncated_and_replaced_is_followed() {
    let place = Scratch::new();
    let path = place.join("events");
    let whole = lines();
    fs::write(&path, &whole[..20]).unwrap();
    let mut command = telltale();
    let mut follower = Running::start(command.arg("events").arg(&path).args(["-f", "--last", "1"]));
    let append = |bytes: &[u8]| {
        OpenOptions::new().append(true).open(&path).unwrap().write_all(bytes).unwrap();
    };
    append(&whole[20..]);
    // Only the last of what is there at the start; that may be before or after the line above.
    let mut line = follower.line();
    while !line.contains("phase 2") {
        line = follower.line();
    }
    fs::write(&path, &whole[..whole.iter().position(|byte| *byte == b'\n').unwrap() + 1]).unwrap();
    assert!(follower.line().contains("grad#0"));
    fs::write(place.join("other"), &whole).unwrap();
    fs::rename(place.join("other"), &path).unwrap();
    let lines = [follower.line(), follower.line()];
    assert!(lines[0].contains("grad#0") && lines[1].contains("12 events lost"), "{lines:?}");
    follower.child.interrupt();
    assert_eq!(follower.status(), Some(0));
}

#[test]
fn standard_input_is_followed_event_by_event() {
    let whole = lines();
    let mut command = telltale();
    let mut follower = Running::start(command.args(["events", "-", "-f"]).stdin(Stdio::piped()));
    let mut input = follower.child.child().stdin.take().unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    input.write_all(&whole[..first + 5]).unwrap();
    assert!(follower.line().contains("PREFIX"));
    assert!(follower.line().contains("grad#0"));
    input.write_all(&whole[first + 5..]).unwrap();
    assert!(follower.line().contains("12 events lost"));
    follower.child.interrupt();
    assert_eq!(follower.status(), Some(0));
}

#[test]
fn the_memory_for_a_large_file_is_that_of_one_event() {
    let place = Scratch::new();
    let path = place.join("large");
    let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
    let line = lines();
    let first = &line[..line.iter().position(|byte| *byte == b'\n').unwrap() + 1];
    // About 25 MB, and 16 MB of address space for data.
    (0..80_000).for_each(|_| file.write_all(first).unwrap());
    file.flush().unwrap();
    let limited = "ulimit -d 16384; exec \"$0\" events \"$1\" --summary";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_telltale")]).arg(&path);
    let said = said(&mut command);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.out.ends_with("80,000 events\n"), "{}", said.out);
}

#[test]
fn other_tools_read_what_was_converted() {
    let test = "telltale::cli::events::other_tools_read_what_was_converted";
    let Some(mut python) = python_with(test, "numpy, safetensors.numpy") else { return };
    let place = Scratch::new();
    capture(&place.join("dumps"), 1);
    for form in ["npy", "safetensors"] {
        let arguments =
            ["--convert", form, "-o", place.join(form).to_str().unwrap()].map(str::to_owned);
        assert_eq!(events(&place.join("dumps"), &arguments).status, Some(0));
    }
    let script = "import numpy, sys, safetensors.numpy as s\n\
                  d = '/layer%2f0%1b[2J/core_0/0.'\n\
                  print(numpy.load(sys.argv[1] + d + 'npy').tolist())\n\
                  print(*[v.tolist() for v in s.load_file(sys.argv[2] + d + 'safetensors').values()])";
    python.args(["-c", script]).arg(place.join("npy")).arg(place.join("safetensors"));
    assert_eq!(said(&mut python).out, "[[1, 2], [-1, 4]]\n[[1, 2], [-1, 4]]\n");
}

#[test]
fn an_event_file_keeps_what_was_lost() {
    let place = Scratch::new();
    fs::write(place.join("lines"), lines()).unwrap();
    let raw = place.join("raw");
    let arguments = ["--convert", "raw", "-o", raw.to_str().unwrap()];
    // One of them has no bytes.
    assert_eq!(events(&place.join("lines"), &arguments).status, Some(1));
    let mut capture = Capture::open(&raw).unwrap();
    let items: Vec<Item> = std::iter::from_fn(|| capture.next_item().unwrap()).collect();
    assert_eq!(items.len(), 4);
    assert_eq!(items[1], Item::Lost(Losses { events: 12, ..Losses::default() }));
}
