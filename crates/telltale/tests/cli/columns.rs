//! `telltale smi --query-device` and `--query-process`: what scripts read.

use std::path::Path;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Running, Said, emulate, replaying, smi, telltale};

fn lines(said: &Said) -> Vec<String> {
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.ends_with("\r\n"), "{said:?}");
    said.out.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

fn n300(place: &Scratch) -> (Machine, std::path::PathBuf) {
    let root = place.join("m");
    let machine = Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
    (machine, root)
}

#[test]
fn devices_are_reported_by_the_fields_that_were_asked_for() {
    let place = Scratch::new();
    let (_machine, root) = n300(&place);
    let ask = "device, board,device.dram,device.dram_capacity,device.dram_share,temperature";
    let found = lines(&smi(&root, &["--query-device", ask]));
    let heading =
        "device,board,device.dram [B],device.dram_capacity [B],device.dram_share,temperature [C]";
    assert_eq!(found[0], heading);
    assert!(found[1].starts_with("251732099,n300,0,12884901888,0,"), "{found:?}");
    let temperature: f64 = found[1].rsplit(',').next().unwrap().parse().unwrap();
    assert!((10.0..100.0).contains(&temperature), "{found:?}");
    // The second chip has no sensors of its own: absent is empty.
    assert_eq!(found[2], "251732099R,n300,0,12884901888,0,");
    let bare = ["--query-device=device", "--format=csv,noheader,nounits"];
    assert_eq!(lines(&smi(&root, &bare)), ["251732099", "251732099R"]);
    let nounits = ["--query-device=power", "--format=csv,nounits", "--filter", "power is known"];
    assert_eq!(lines(&smi(&root, &nounits))[0], "power");
}

#[test]
fn every_sensor_that_is_named_is_read() {
    let place = Scratch::new();
    let (mut machine, root) = n300(&place);
    machine.inject("link:0:8:4".parse().unwrap()).unwrap();
    let link =
        "device,pcie_generation,pcie_generation_max,pcie_width,pcie_width_max,pcie_rx,pcie_tx";
    let found = lines(&smi(&root, &["--query-device", link]));
    let heading = "device,pcie_generation,pcie_generation_max,pcie_width,pcie_width_max,\
                   pcie_rx [B/s],pcie_tx [B/s]";
    // One look knows no rate, and the second chip has no link.
    assert_eq!(found, [heading, "251732099,3,4,4,16,,", "251732099R,,,,,,"]);
    let others = ["--query-device=voltage,axiclk,heartbeat", "--format=csv,noheader"];
    let found = lines(&smi(&root, &others));
    assert!(found[0].split(',').all(|value| value.parse::<f64>().is_ok()), "{found:?}");
    let filter = ["--query-device=device", "--format=csv,noheader", "--filter", "pcie_width < 16"];
    assert_eq!(lines(&smi(&root, &filter)), ["251732099"]);
    let every = ["--query-device=pcie_rx", "--format=csv,noheader,nounits", "--loop", "0.2"];
    let mut command = telltale();
    let mut running = Running::start(command.arg("smi").arg("--root").arg(&root).args(every));
    let rates: Vec<String> = (0..4).map(|_| running.line()).collect();
    assert_eq!(rates, ["", "", "0", ""], "known from the second collection on");
}

#[test]
fn a_timestamp_reports_the_rows_of_one_snapshot_from_those_of_the_next() {
    let place = Scratch::new();
    let (_machine, root) = n300(&place);
    let found = lines(&smi(&root, &["--query-device", "timestamp,device"]));
    assert_eq!(found[0], "timestamp [ns],device");
    let times: Vec<u64> =
        found[1..].iter().map(|line| line.split_once(',').unwrap().0.parse().unwrap()).collect();
    assert!(times.len() == 2 && times[0] == times[1] && times[0] > 1_700_000_000_000_000_000);
    let bare = ["--query-process", "timestamp,pid", "--format=csv,nounits"];
    assert_eq!(lines(&smi(&root, &bare)), ["timestamp,pid"]);
}

#[test]
fn a_process_has_a_row_for_each_device_only_where_a_field_is_of_one() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let replay = replaying(&root);
    let pid = replay.child.id();
    let once = lines(&smi(&root, &["--query-process", "pid,name,state,source"]));
    assert_eq!(once, ["pid,name,state,source".to_owned(), format!("{pid},telltale,alive,ledger")]);
    let each = lines(&smi(&root, &["--query-process", "pid,device,peak"]));
    assert_eq!(each[0], "pid,device,peak [B]");
    let peak: u64 = each[1].rsplit(',').next().unwrap().parse().unwrap();
    assert!(peak > 0 && each.len() == 2, "{each:?}");
}

#[test]
fn what_is_no_field_or_no_format_is_refused() {
    let place = Scratch::new();
    let root = Path::new(place.path());
    for (arguments, words) in [
        (vec!["--query-device=devise"], "did you mean `device`?"),
        (vec!["--query-device=temp"], "did you mean `temperature`?"),
        (vec!["--format=csv,nounits"], "--query-device"),
        (vec!["--query-device=pid"], "use --query-process"),
        (vec!["--query-device=device,"], "there is no field ``"),
        (vec!["--query-device=device", "--format=xml"], "`xml` is none of csv, noheader, nounits"),
        (vec!["--query-device=device", "--json"], "cannot be used with"),
    ] {
        let said = smi(root, &arguments);
        assert_eq!((said.status, said.out.as_str()), (Some(64), ""), "{said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
}
