//! Devices by their names, and the order of rows.

use telltale_query::{DeviceList, DeviceListError, Sort, SortError};
use telltale_schema::snapshot::Snapshot;

use crate::query::machine::snapshot;

/// The devices, and the pids with the devices that each has.
fn shown(snapshot: &Snapshot) -> (Vec<&str>, Vec<(u32, Vec<&str>)>) {
    let name = |place: usize| &*snapshot.devices[place].id;
    let processes = snapshot.processes.iter().map(|process| {
        let on = process.devices.iter().map(|held| name(held.device)).collect();
        (process.pid.expect("each process of this machine has a pid"), on)
    });
    (snapshot.devices.iter().map(|device| &*device.id).collect(), processes.collect())
}

#[test]
fn devices_are_named_by_id_index_and_pci_address() {
    let all = snapshot();
    for (names, devices) in [
        ("hot", &["hot"][..]),
        ("HOT, 0", &["cool", "hot"]),
        ("2,2", &["mute"]),
        ("0000:01:00.0", &["hot"]),
        ("02:00.0", &["mute"]),
    ] {
        let list: DeviceList = names.parse().unwrap();
        assert_eq!(list.check([&all].into_iter()), Ok(()));
        assert_eq!(shown(&list.select(&all)).0, devices, "{names}");
    }
    let list: DeviceList = "hot".parse().unwrap();
    let selected = list.select(&all);
    let of_hot = vec![(100, vec!["hot"]), (200, vec!["hot"]), (300, vec!["hot"])];
    assert_eq!(shown(&selected).1, of_hot);
    let left_out = selected.left_out.unwrap();
    assert_eq!((left_out.devices, left_out.processes), (2, 1));
}

#[test]
fn an_id_comes_before_an_index() {
    let mut all = snapshot();
    all.devices[2].id = "1".into();
    let list: DeviceList = "1".parse().unwrap();
    assert_eq!(shown(&list.select(&all)).0, ["1"]);
    all.devices[2].identity = all.devices[1].identity.clone();
    let list: DeviceList = "0".parse().unwrap();
    assert_eq!(shown(&list.select(&all)).0, ["cool"]);
}

#[test]
fn a_name_that_no_device_has_is_named() {
    let list: DeviceList = "hot,3,cold".parse().unwrap();
    let error = list.check([&snapshot()].into_iter()).unwrap_err().to_string();
    assert_eq!(error, "there is no device 3; `telltale smi -L` lists the 3 there are");
    assert_eq!(shown(&list.select(&snapshot())).0, ["hot"], "one that vanished is left out");
    // Of several machines, each may have one of them.
    let mut other = snapshot();
    other.devices.truncate(1);
    other.devices[0].id = "cold".into();
    let list: DeviceList = "hot,cold".parse().unwrap();
    assert_eq!(list.check([&other, &snapshot()].into_iter()), Ok(()));
    assert_eq!("hot,".parse::<DeviceList>(), Err(DeviceListError::Empty));
    assert_eq!("0,".repeat(256).parse::<DeviceList>(), Err(DeviceListError::Empty));
    assert_eq!(["0"; 257].join(",").parse::<DeviceList>(), Err(DeviceListError::TooMany));
}

#[test]
fn rows_are_sorted_and_what_is_not_known_comes_last() {
    let sorted = |text: &str| {
        let mut sorted = snapshot();
        Sort::parse(text).unwrap().apply(&mut sorted);
        sorted
    };
    let by_dram = sorted("dram:desc");
    let expected =
        vec![(200, vec!["hot"]), (100, vec!["cool", "hot"]), (300, vec!["hot"]), (400, vec![])];
    assert_eq!(shown(&by_dram), (vec!["cool", "hot", "mute"], expected));
    let by_dram = sorted("DRAM");
    let expected =
        vec![(100, vec!["hot", "cool"]), (200, vec!["hot"]), (300, vec!["hot"]), (400, vec![])];
    assert_eq!(shown(&by_dram).1, expected);
    let by_pid = shown(&sorted("pid:desc")).1.iter().map(|(pid, _)| *pid).collect::<Vec<_>>();
    assert_eq!(by_pid, [400, 300, 200, 100]);
    let by_user = shown(&sorted("user:asc")).1.iter().map(|(pid, _)| *pid).collect::<Vec<_>>();
    assert_eq!(by_user, [300, 100, 400, 200], "the stranger is 1000");
}

#[test]
fn a_field_of_devices_sorts_devices_too() {
    let mut sorted = snapshot();
    Sort::parse("temperature:desc").unwrap().apply(&mut sorted);
    let expected =
        vec![(100, vec!["hot", "cool"]), (200, vec!["hot"]), (300, vec!["hot"]), (400, vec![])];
    assert_eq!(shown(&sorted), (vec!["hot", "cool", "mute"], expected));
    let device_of = |place: usize| sorted.processes[0].devices[place].device;
    assert_eq!([device_of(0), device_of(1)], [0, 1]);
}

#[test]
fn an_order_that_makes_no_sense_is_refused() {
    let unknown = Sort::parse("drm:desc").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no field `drm`; did you mean `dram`? (--help-fields lists them)"
    );
    assert_eq!(Sort::parse("dram:down"), Err(SortError::Direction("down".into())));
    assert!(Sort::parse("").is_err());
}
