//! The words for what processes and the host use.

use telltale_schema::calendar;
use telltale_schema::quantity;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{HostUsage, Process, ProcessUsage};

/// A share as a percentage: of processor time, 100 % is one processor.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes a second.
pub(crate) fn rate(bytes: u64) -> String {
    format!("{}/s", quantity::bytes(bytes))
}

/// When a process was started, in UTC, to the second.
pub(crate) fn started(process: &Process) -> Option<String> {
    process.started_at.map(calendar::format)
}

/// What a process uses, in one line; nothing where nothing of it is known.
pub(crate) fn of_process(usage: &ProcessUsage) -> Option<String> {
    let cpu = part(&usage.cpu_ratio, |share| format!("CPU {}", percent(*share)));
    let resident =
        part(&usage.resident_bytes, |bytes| format!("{} resident", quantity::bytes(*bytes)));
    let threads = part(&usage.threads, |threads| match threads {
        1 => String::from("1 thread"),
        many => format!("{} threads", quantity::count(*many)),
    });
    let read = part(&usage.read_bytes_per_second, |bytes| format!("reads {}", rate(*bytes)));
    let written = part(&usage.written_bytes_per_second, |bytes| format!("writes {}", rate(*bytes)));
    joined([cpu, resident, threads, read, written])
}

/// What all processes together use, as `CPU 34%`, `RAM 19%` and the load with how many processors
/// there are, `load 12.3/64`; nothing where nothing of it is known.
pub(crate) fn of_host(usage: &HostUsage) -> Vec<String> {
    let compact = |share: f64| format!("{:.0}%", share * 100.0);
    let of = usage.processors.value().map_or_else(String::new, |all| format!("/{all}"));
    let cpu = part(&usage.cpu_ratio, |share| format!("CPU {}", compact(*share)));
    let memory = usage.used_bytes.value().zip(usage.memory_bytes.value());
    let memory = memory.filter(|(_, all)| **all > 0);
    let memory = memory.map(|(used, all)| format!("RAM {}", compact(*used as f64 / *all as f64)));
    let load = part(&usage.load_1, |load| format!("load {load:.1}{of}"));
    [cpu, memory, load].into_iter().flatten().collect()
}

fn part<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> Option<String> {
    reading.value().map(words)
}

fn joined<const PARTS: usize>(parts: [Option<String>; PARTS]) -> Option<String> {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

#[cfg(test)]
mod tests {
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::{Absence, Reading};
    use telltale_schema::snapshot::{HostUsage, ProcessUsage};

    use super::{of_host, of_process};

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut usage = ProcessUsage::absent(Absence::NotYet, "");
        assert_eq!(of_process(&usage), None);
        usage.cpu_ratio = Reading::new(1.234, Timestamp(1));
        usage.threads = Reading::new(1, Timestamp(1));
        usage.read_bytes_per_second = Reading::new(2048, Timestamp(1));
        assert_eq!(of_process(&usage).unwrap(), "CPU 123 %, 1 thread, reads 2.0 KiB/s");
        let no = || Reading::absent(Absence::NotYet, "");
        let memory_bytes = Reading::absent(Absence::NotYet, "");
        let mut host = HostUsage {
            cpu_ratio: no(),
            processors: Reading::new(64, Timestamp(1)),
            used_bytes: Reading::new(1 << 30, Timestamp(1)),
            memory_bytes,
            load_1: no(),
            load_5: no(),
            load_15: no(),
        };
        assert!(of_host(&host).is_empty(), "how many processors there are is no use of them");
        host.cpu_ratio = Reading::new(0.5, Timestamp(1));
        host.memory_bytes = Reading::new(4 << 30, Timestamp(1));
        host.load_1 = Reading::new(12.34, Timestamp(1));
        assert_eq!(of_host(&host), ["CPU 50%", "RAM 25%", "load 12.3/64"]);
    }
}
