//! XID errors, which a GPU of the library in `nvml.c` reports as events: each line of its file `xid` is
//! one, by its number.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use telltale_collector::hardware::NvidiaSource;
use telltale_collector::source::{HardwareSource, SourceReading};
use telltale_harness::wait_until;
use telltale_schema::clock::ManualClock;
use telltale_schema::reading::{Absence, Reading};

use super::{LIBRARY, compile, furnished, of_tree, source};
use crate::hardware::tree::Machine;

const SOON: Duration = Duration::from_secs(20);

/// Two GPUs with events.
fn with_events() -> Machine {
    let machine = furnished();
    for gpu in [0, 1] {
        machine.write(&format!("nvml/gpu{gpu}/events"), "1\n");
        machine.write(&format!("nvml/gpu{gpu}/xid"), "8\n");
    }
    machine
}

/// The same, and a source that counts the errors of the first one.
fn counting() -> (Machine, NvidiaSource) {
    let machine = with_events();
    let mut source = source(&machine);
    source.read();
    wait_for(&mut source, 0, NONE_YET);
    (machine, source)
}

/// The driver reports these errors of a GPU.
pub(super) fn raise(machine: &Machine, gpu: u32, numbers: &[u64]) {
    let path = machine.path().join(format!("nvml/gpu{gpu}/xid"));
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    let lines: String = numbers.iter().map(|number| format!("{number}\n")).collect();
    file.write_all(lines.as_bytes()).unwrap();
}

/// How many a GPU had, and the last, or why that is not known.
type Found = [Result<u64, Absence>; 2];

fn found(reading: &SourceReading, gpu: usize) -> Found {
    let errors = reading.devices[gpu].telemetry.errors.as_ref().unwrap();
    [&errors.xid_errors_total, &errors.xid_last].map(number)
}

/// The same of those that mean the hardware.
fn of_hardware(reading: &SourceReading, gpu: usize) -> Found {
    let errors = reading.devices[gpu].telemetry.errors.as_ref().unwrap();
    [&errors.xid_hardware_errors_total, &errors.xid_hardware_last].map(number)
}

fn number(reading: &Reading<u64>) -> Result<u64, Absence> {
    reading.value().copied().ok_or_else(|| reading.absence().unwrap().0)
}

fn wait_for(source: &mut NvidiaSource, gpu: usize, expected: Found) {
    wait_until(&format!("GPU {gpu} to have {expected:?}"), SOON, || {
        found(&source.read(), gpu) == expected
    });
}

const NONE_YET: Found = [Ok(0), Err(Absence::NotYet)];

#[test]
fn errors_are_counted_from_the_second_collection_on_each_for_its_gpu() {
    let machine = with_events();
    let mut source = source(&machine);
    assert_eq!(found(&source.read(), 0), [Err(Absence::NotYet); 2]);
    // What was before is not counted.
    wait_for(&mut source, 0, NONE_YET);
    wait_for(&mut source, 1, NONE_YET);
    raise(&machine, 1, &[31]);
    wait_for(&mut source, 1, [Ok(1), Ok(31)]);
    raise(&machine, 1, &[43, 94, 999]);
    wait_for(&mut source, 1, [Ok(4), Err(Absence::NotUnderstood)]);
    raise(&machine, 1, &[18_446_744_073_709_551_615]);
    wait_for(&mut source, 1, [Ok(5), Err(Absence::Implausible)]);
    assert_eq!(found(&source.read(), 0), NONE_YET);
    raise(&machine, 0, &[13; 1000]);
    wait_for(&mut source, 0, [Ok(1000), Ok(13)]);
}

#[test]
fn a_gpu_that_fell_off_the_bus_says_which_error_was_the_last() {
    let (machine, mut source) = counting();
    raise(&machine, 0, &[79]);
    wait_for(&mut source, 0, [Ok(1), Ok(79)]);
    // What was counted is known as long as the driver still has the GPU.
    for (call, expected) in [("temperature", [Ok(1), Ok(79)]), ("handle", [Err(Absence::Gone); 2])]
    {
        machine.write(&format!("nvml/gpu0/{call}"), "!GPU_IS_LOST");
        let reading = source.read();
        assert_eq!(found(&reading, 0), expected, "{call}");
    }
    let reading = source.read();
    let errors = reading.devices[0].telemetry.errors.as_ref().unwrap();
    let (_, detail) = errors.xid_last.absence().unwrap();
    assert!(detail.ends_with("the last XID error was 79"), "{detail}");
    for (call, text) in [("temperature", "41\n"), ("handle", "1\n")] {
        machine.write(&format!("nvml/gpu0/{call}"), text);
    }
    wait_for(&mut source, 0, [Ok(1), Ok(79)]);
    raise(&machine, 0, &[94]);
    wait_for(&mut source, 0, [Ok(2), Ok(94)]);
}

#[test]
fn errors_of_the_hardware_are_counted_apart_from_those_of_programs() {
    let (machine, mut source) = counting();
    // A program's error follows at once.
    raise(&machine, 0, &[48, 45]);
    wait_for(&mut source, 0, [Ok(2), Ok(45)]);
    assert_eq!(of_hardware(&source.read(), 0), [Ok(1), Ok(48)]);
    raise(&machine, 0, &[31, 999, 13]);
    wait_for(&mut source, 0, [Ok(5), Ok(13)]);
    assert_eq!(of_hardware(&source.read(), 0), [Ok(1), Ok(48)]);
    assert_eq!(of_hardware(&source.read(), 1), NONE_YET);
}

#[test]
fn what_the_hardware_had_is_over_when_the_gpu_was_reset() {
    let cases = [("handle", "!GPU_IS_LOST", "1\n"), ("temperature", "!RESET_REQUIRED", "41\n")];
    for (call, sick, well) in cases {
        let (machine, mut source) = counting();
        raise(&machine, 0, &[79]);
        wait_for(&mut source, 0, [Ok(1), Ok(79)]);
        assert_eq!(of_hardware(&source.read(), 0), [Ok(1), Ok(79)], "{call}");
        machine.write(&format!("nvml/gpu0/{call}"), sick);
        source.read();
        // Silence does not show that it was reset.
        machine.write(&format!("nvml/gpu0/{call}"), well);
        let hang = machine.hang("nvml/gpu0/power");
        wait_for(&mut source, 0, [Ok(1), Ok(79)]);
        assert_eq!(of_hardware(&source.read(), 0), [Ok(1), Ok(79)], "{call}");
        drop(hang);
        machine.write("nvml/gpu0/power", "119500\n");
        wait_until("the reset to be noticed", SOON, || of_hardware(&source.read(), 0) == NONE_YET);
        wait_for(&mut source, 0, [Ok(1), Ok(79)]);
        raise(&machine, 0, &[48]);
        wait_for(&mut source, 0, [Ok(2), Ok(48)]);
        assert_eq!(of_hardware(&source.read(), 0), [Ok(1), Ok(48)], "{call}");
    }
}

#[test]
fn a_failing_wait_gives_its_reason_and_counting_goes_on_after_it() {
    let machine = with_events();
    let mut source = source(&machine);
    source.read();
    raise(&machine, 0, &[48]);
    wait_for(&mut source, 1, NONE_YET);
    raise(&machine, 0, &[63]);
    wait_until("an error to be counted", SOON, || found(&source.read(), 0)[1] == Ok(63));
    let total = found(&source.read(), 0)[0].unwrap();
    machine.write("nvml/gpu0/xid", "!GPU_IS_LOST");
    wait_for(&mut source, 0, [Err(Absence::Gone); 2]);
    assert_eq!(found(&source.read(), 1), NONE_YET, "the other one is followed");
    machine.write("nvml/gpu0/xid", "\n");
    wait_for(&mut source, 0, [Ok(total), Ok(63)]);
    raise(&machine, 0, &[95]);
    wait_for(&mut source, 0, [Ok(total + 1), Ok(95)]);
}

#[test]
fn gpus_without_events_and_old_libraries_lack_them_alone() {
    let machine = with_events();
    machine.remove("nvml/gpu0/events");
    let mut of_gpu = source(&machine);
    of_gpu.read();
    wait_for(&mut of_gpu, 0, [Err(Absence::Unsupported); 2]);
    wait_for(&mut of_gpu, 1, NONE_YET);
    // The loader takes two libraries of one path for one.
    let other = with_events();
    other.remove(LIBRARY);
    let old = compile("nvml-no-events", &["-DOLD"]);
    std::fs::copy(old, other.path().join(LIBRARY)).unwrap();
    let mut of_library = source(&other);
    of_library.read();
    wait_for(&mut of_library, 1, [Err(Absence::Unsupported); 2]);
    assert_eq!(of_library.read().status.errors, []);
}

#[test]
fn a_wait_that_never_ends_holds_up_nothing() {
    let machine = with_events();
    let clock = Arc::new(ManualClock::default());
    let mut source = of_tree(machine.tree(), Arc::clone(&clock) as _);
    source.read();
    wait_for(&mut source, 0, NONE_YET);
    // The thread opens it for the next event, and stays there.
    let hang = machine.hang("nvml/gpu0/xid");
    wait_until("the thread to be missed", SOON, || {
        clock.advance_ns(11_000_000_000);
        found(&source.read(), 0) == [Err(Absence::TimedOut); 2]
    });
    let reading = source.read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(reading.devices[0].telemetry.temperature_celsius.value(), Some(&41.0));
    // Neither the end of the source nor another one waits for it.
    drop(source);
    let mut next = of_tree(machine.tree(), Arc::clone(&clock) as _);
    assert_eq!(next.read().status.errors, []);
    drop(hang);
}
