//! Devices as programs describe them, from libtelltale to the table and the metrics: each chip is one
//! row and one series, however it was described, and what only grows never falls.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use telltale_harness::exposition::{ParsedSample, parse, promtool};
use telltale_harness::{ChildGuard, Scratch, cargo_library_directory, compile_c, skip, wait_until};
use telltale_runtime::{DeviceDescription, MemoryKind, Options, Runtime};
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Accounting, Snapshot};

use crate::cli::command::{Said, TIMEOUT, emulate, said, telltale};
use crate::cli::serve::Serving;

const MIB: u64 = 1 << 20;

/// A machine and a runtime directory.
struct Bench {
    place: Scratch,
    _machine: ChildGuard,
}

impl Bench {
    fn new(machine: &str) -> Self {
        let place = Scratch::new();
        std::fs::create_dir(place.join("run")).unwrap();
        let _machine = emulate(machine, &place.join("m"), &[]);
        Self { place, _machine }
    }

    /// A program that has these devices open.
    fn program(&self, devices: &[&str]) -> ChildGuard {
        let program = self.place.join("described");
        if !program.exists() {
            let capi = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../capi");
            let library = cargo_library_directory("telltale-capi", "telltale");
            let library = library.join("libtelltale.a");
            let include = format!("-I{}", capi.join("include").display());
            let mut flags = vec![include.as_str(), library.to_str().unwrap()];
            flags.extend(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
            compile_c(&capi.join("tests/c/described.c"), &program, &flags);
        }
        let mut command = Command::new(program);
        command.arg(self.place.join("run")).args(devices).env_remove("TELLTALE_DISABLED");
        let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        let output = child.child().stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "recording\n");
        child
    }

    fn smi(&self, arguments: &[&str]) -> Said {
        let mut command = telltale();
        command.arg("smi").arg("--root").arg(self.place.join("m")).arg("--runtime-dir");
        said(command.arg(self.place.join("run")).args(arguments))
    }

    fn snapshot(&self) -> Snapshot {
        let said = self.smi(&["--json"]);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    fn serve(&self) -> Serving {
        let mut command = telltale();
        command.env("HOME", self.place.path()).args(["serve", "--interval", "0.1"]);
        command.args(["--http", "unix:http.sock", "--root"]).arg(self.place.join("m"));
        command.arg("--runtime-dir").arg(self.place.join("run"));
        command.arg("--state-dir").arg(self.place.join("state"));
        let mut service = Serving::start(&mut command);
        service.says("collecting");
        service
    }

    /// The exposition, which has no series twice.
    fn metrics(&self) -> Vec<ParsedSample> {
        let text = scraped(&self.place.join("run/http.sock"));
        let families = parse(&text, false).unwrap_or_else(|why| panic!("{why}\n{text}"));
        match promtool(&text) {
            Some(words) => assert_eq!(words, ""),
            None => skip("cli::described", "needs promtool"),
        }
        families.into_iter().flat_map(|family| family.samples).collect()
    }
}

/// What a scrape over a socket gives.
fn scraped(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = "GET /metrics HTTP/1.0\r\nHost: x\r\nAccept: text/plain\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{head}");
    body.to_owned()
}

/// The values of a metric by device.
fn by_device(samples: &[ParsedSample], name: &str) -> BTreeMap<String, f64> {
    let of_name = samples.iter().filter(|sample| sample.name == name);
    of_name.filter_map(|it| Some((it.labels.get("device")?.clone(), it.value))).collect()
}

fn value(samples: &[ParsedSample], name: &str) -> Option<f64> {
    samples.iter().find(|sample| sample.name == name).map(|sample| sample.value)
}

fn dropped(samples: &[ParsedSample]) -> f64 {
    let dropped = samples.iter().filter(|it| it.name == "telltale_series_dropped_total");
    dropped.map(|sample| sample.value).sum()
}

const BOARD: &str = "board=0x0100014511732099";

/// Each way to describe both chips of an n300, as the header and docs/integrate.md allow.
const WAYS: [[&str; 2]; 8] = [
    ["asic=0x251732099", "asic=0x251732099,location=1,remote=1"],
    ["asic=0x251732099", "asic=0x25173209e,location=1,remote=1"],
    ["asic=0x251732099,BOARD", "asic=0x25173209e,BOARD,location=1,remote=1"],
    ["asic=0x251732099,BOARD", "asic=0x351732099,BOARD,location=1,remote=1"],
    ["BOARD", "BOARD,location=1,remote=1"],
    ["BOARD", "BOARD,location=1"],
    ["ordinal=0", "ordinal=0,location=1,remote=1"],
    ["bus=3", "bus=3,location=1,remote=1"],
];

#[test]
fn both_chips_of_an_n300_are_one_row_and_one_series_each_in_every_way() {
    let bench = Bench::new("n300");
    let service = bench.serve();
    let chips = ["251732099", "251732099R"];
    for way in WAYS {
        let way = way.map(|one| one.replace("BOARD", BOARD));
        let mut program = bench.program(&[&way[0], &way[1]]);
        let used = |snapshot: &Snapshot| {
            let dram = |device: &telltale_schema::snapshot::Device| {
                let space = device.space(MemorySpace::Dram).unwrap();
                (device.id.clone(), *space.used_bytes.value().unwrap())
            };
            snapshot.devices.iter().map(dram).collect::<Vec<_>>()
        };
        let expected: Vec<(String, u64)> =
            chips.iter().zip([MIB, 2 * MIB]).map(|(id, bytes)| ((*id).to_owned(), bytes)).collect();
        assert_eq!(used(&bench.snapshot()), expected, "{way:?}");
        let series = || by_device(&bench.metrics(), "telltale_process_operations_total");
        let wanted = BTreeMap::from(chips.map(str::to_owned).map(|id| {
            let operations = if id.ends_with('R') { 2.0 } else { 1.0 };
            (id, operations)
        }));
        wait_until(&format!("the series of {way:?}"), TIMEOUT, || series() == wanted);
        let samples = bench.metrics();
        assert_eq!(dropped(&samples), 0.0, "{way:?}");
        let capacity = samples.iter().filter(|sample| {
            sample.name == "telltale_device_memory_capacity_bytes"
                && sample.labels["space"] == "dram"
        });
        assert_eq!(capacity.count(), 2, "{way:?}");
        drop(program.child().stdin.take());
        assert!(program.wait_within("the program to end", TIMEOUT).success());
        wait_until("it to be gone", TIMEOUT, || series().is_empty());
    }
    service.end();
}

/// README's example: it says nothing of its devices but its own numbers for them.
#[test]
fn devices_of_which_only_a_number_is_said_are_as_many_as_numbers() {
    let readme = include_str!("../../../../README.md");
    let bench = Bench::new("n150");
    let service = bench.serve();
    let mut options = Options::new("my runtime 1.0");
    options.directory = Some(bench.place.join("run"));
    options.disabled = false;
    let runtime = Runtime::start(options);
    let devices = [0, 1].map(|number| {
        let line = "runtime.open_device(DeviceDescription { logical_id: 0, ..Default::default() })";
        assert!(readme.contains(line));
        runtime.open_device(DeviceDescription { logical_id: number, ..Default::default() })
    });
    for (device, bytes) in devices.iter().zip([MIB, 2 * MIB]) {
        device.allocate(MemoryKind::Dram, 0x1000, bytes);
        device.count_operations(bytes);
    }
    let expected = BTreeMap::from([
        (String::from("unknown:0"), 1_048_576.0),
        (String::from("unknown:1"), 2_097_152.0),
    ]);
    let series = |name: &str| {
        let mut all = by_device(&bench.metrics(), name);
        all.retain(|device, _| device.starts_with("unknown"));
        all
    };
    for name in [
        "telltale_process_operations_total",
        "telltale_process_memory_live_bytes",
        "telltale_device_memory_used_bytes",
    ] {
        wait_until(name, TIMEOUT, || series(name) == expected);
    }
    let table = bench.smi(&[]);
    for id in ["unknown:0", "unknown:1"] {
        assert_eq!(table.out.matches(id).count(), 2, "{}", table.out);
    }
    service.end();
}

#[test]
fn a_histogram_does_not_fall_when_one_of_its_processes_ends() {
    let bench = Bench::new("n150");
    let service = bench.serve();
    let mut programs = [bench.program(&["ordinal=0"]), bench.program(&["ordinal=0"])];
    let own_metrics = || {
        let samples = bench.metrics();
        let processes = value(&samples, "telltale_processes");
        let name = |ending| format!("telltale_application_wait_seconds_{ending}");
        let own_metrics = ["count", "sum"].map(|ending| value(&samples, &name(ending)));
        (processes, own_metrics)
    };
    let both = [Some(200.0), Some(100.0)];
    wait_until("both to be counted", TIMEOUT, || own_metrics() == (Some(2.0), both));
    drop(programs[0].child().stdin.take());
    assert!(programs[0].wait_within("one to end", TIMEOUT).success());
    wait_until("one to be gone", TIMEOUT, || {
        let (processes, own_metrics) = own_metrics();
        assert_eq!(own_metrics, both);
        processes == Some(1.0)
    });
    service.end();
}

#[test]
fn a_claim_that_cannot_be_is_absent_with_its_reason_and_pid() {
    let bench = Bench::new("n150");
    let liar = format!("ordinal=0,bytes={}", 13u64 << 30);
    let program = bench.program(&[&liar]);
    let pid = program.id().to_string();
    let snapshot = bench.snapshot();
    let held = &snapshot.processes[0].devices[0];
    assert_eq!((held.accounting, held.live_bytes(MemorySpace::Dram)), (Accounting::Unknown, None));
    let why = "claims 13.0 GiB of DRAM where there are 12.0 GiB";
    assert_eq!(held.refused.as_deref(), Some(why));
    let errors = snapshot.sources.iter().flat_map(|source| &source.errors);
    let reported = errors.filter(|error| error.subject.contains(&format!("pid {pid} (described)")));
    let [error] = reported.collect::<Vec<_>>()[..] else { panic!("{:?}", snapshot.sources) };
    assert!(error.detail.starts_with(why), "{error:?}");
    let table = bench.smi(&[]);
    let row = table.out.lines().find(|line| line.trim_start().starts_with(&pid)).unwrap();
    assert!(row.contains("n/a") && !row.contains("0 B"), "{}", table.out);
    assert!(table.err.contains(&pid) || table.out.contains(why), "{table:?}");
    let csv = bench.smi(&["--query-process=pid,device,dram"]);
    assert!(!csv.out.contains(",0") && csv.out.contains(&pid), "{csv:?}");
    let details = bench.smi(&["--details"]);
    assert!(details.out.contains(why), "{}", details.out);
}
