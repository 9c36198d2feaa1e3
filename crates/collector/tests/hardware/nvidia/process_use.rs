//! How busy each process keeps a GPU, from the samples of the library in `nvml.c`.

use telltale_collector::NvmlUse;
use telltale_collector::source::{DeviceReading, HardwareSource};
use telltale_schema::reading::Absence;

use super::{LIBRARY, collect, divide, furnished, reasons, source, users};

fn busy(device: &DeviceReading) -> Vec<(u32, Option<f64>)> {
    let memory = device.memory.as_ref().unwrap();
    memory.processes.iter().map(|usage| (usage.pid, usage.busy_ratio)).collect()
}

#[test]
fn each_process_has_the_share_of_its_latest_sample_and_the_idle_have_none_of_it() {
    let machine = furnished();
    // 99 does not use the GPU, and the sample of 71 is older than asked for.
    machine.write("nvml/gpu0/process_use", "70 20 100000\n70 65 900000\n71 90 -5\n99 1 9\n0 7 9\n");
    // Each holds, one without known memory, and none has a sample.
    machine.write("nvml/gpu1/process_use", "\n");
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(busy(&reading.devices[0]), [(70, Some(0.65)), (71, Some(0.0))]);
    let idle = [(70, Some(0.0)), (71, Some(0.0)), (72, Some(0.0))];
    assert_eq!(busy(&reading.devices[1]), idle);
    assert_eq!(users(&reading.devices[1]).len(), 2, "no memory is made up for the third");
}

#[test]
fn what_a_library_cannot_say_or_cannot_be_true_is_unknown() {
    let machine = furnished();
    let unknown = [(70, None), (71, None)];
    let mut source = source(&machine);
    assert_eq!(busy(&source.read().devices[0]), unknown);
    machine.write("nvml/gpu0/process_use", "70 101 9\n71 4294967295 9\n");
    assert_eq!(busy(&source.read().devices[0]), unknown);
    machine.write("nvml/gpu0/process_use", "!GPU_IS_LOST");
    let lost = source.read();
    assert_eq!(reasons(&lost), [("0000:41:00.0", Absence::Gone)]);
    assert_eq!(busy(&lost.devices[0]), unknown);
    machine.write("nvml/gpu0/process_use", "70 50 9\n");
    assert_eq!(busy(&source.read().devices[0])[0], (70, Some(0.5)));
    let hang = machine.hang("nvml/gpu0/process_use");
    let hung = source.read();
    assert_eq!(reasons(&hung), [("0000:41:00.0", Absence::TimedOut)]);
    assert_eq!(busy(&hung.devices[0]), unknown, "a share of a while ago is none of now");
    drop(hang);
}

#[test]
fn a_snapshot_has_it_for_each_process_and_device_and_instances_have_none() {
    let machine = furnished();
    machine.write("run/.keep", "");
    machine.write("nvml/gpu1/process_use", "70 25 9\n72 12 9\n");
    divide(&machine);
    let snapshot = collect(&machine, NvmlUse::At(machine.path().join(LIBRARY))).0;
    let held = |pid: u32| {
        let process = snapshot.processes.iter().find(|process| process.pid == Some(pid)).unwrap();
        let ratio = |id: &str| {
            let held = process.devices.iter().find(|held| snapshot.devices[held.device].id == id);
            held.and_then(|held| held.busy_ratio)
        };
        [ratio("0000:c1:00.0"), ratio("0000:41:00.0/1")]
    };
    assert_eq!(held(70), [Some(0.25), None]);
    assert_eq!(held(72), [Some(0.12), None], "its memory is not known");
    assert_eq!(held(71), [Some(0.0), None]);
}
