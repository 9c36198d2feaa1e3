//! The shipped traces are whole, small, and show what they are shipped to show.

use telltale_trace::{Trace, TraceEvent, shipped};

fn read(name: &str) -> Trace {
    let bytes = shipped().into_iter().find(|shipped| shipped.name == name).map(|it| it.bytes);
    Trace::read(bytes.expect("a trace of this name is shipped")).expect("a shipped trace is valid")
}

/// Live bytes after each record.
fn live_bytes(trace: &Trace) -> Vec<u64> {
    let mut sizes = vec![0; trace.summary().peak_live_allocations as usize];
    let mut live = 0;
    let step = |event| {
        match event {
            TraceEvent::Allocate { id, size_bytes } => {
                sizes[id as usize] = size_bytes;
                live += size_bytes;
            }
            TraceEvent::Free { id } => live -= sizes[id as usize],
        }
        live
    };
    trace.records().iter().map(|record| record.event).map(step).collect()
}

#[test]
fn together_they_are_below_two_megabytes() {
    let bytes: usize = shipped().iter().map(|shipped| shipped.bytes.len()).sum();
    assert!(bytes < 2_000_000, "{bytes}");
}

#[test]
fn each_lasts_long_enough_to_watch_and_gives_almost_all_back() {
    for shipped in shipped() {
        let summary = read(shipped.name).summary();
        assert!(summary.records > 5_000, "{}: {summary:?}", shipped.name);
        assert!(summary.duration_ns > 10_000_000_000, "{}: {summary:?}", shipped.name);
        assert!(summary.live_bytes_at_end < summary.peak_live_bytes / 10, "{}", shipped.name);
    }
}

#[test]
fn training_rises_and_falls_once_a_step() {
    let trace = read("train");
    let peak = trace.summary().peak_live_bytes;
    let (high, low) = (peak / 10 * 8, peak / 10 * 4);
    let mut steps = 0;
    let mut above = false;
    for live in live_bytes(&trace) {
        if !above && live > high {
            above = true;
            steps += 1;
        } else if above && live < low {
            above = false;
        }
    }
    assert!(steps >= 5, "{steps} steps");
}

#[test]
fn generation_holds_more_with_every_token() {
    let trace = read("generate");
    let live = live_bytes(&trace);
    // The lowest of each eighth of the middle half: what is kept once the scratch is gone.
    let middle = &live[live.len() / 4..live.len() / 4 * 3];
    let kept: Vec<u64> =
        middle.chunks(middle.len() / 8).filter_map(|part| part.iter().min().copied()).collect();
    assert!(kept.len() >= 8 && kept[..8].is_sorted_by(|before, after| before < after), "{kept:?}");
}

#[test]
fn they_tell_where_they_come_from_and_name_no_place_on_that_machine() {
    for shipped in shipped() {
        let description = read(shipped.name).header().description.clone();
        assert!(description.command.contains(shipped.name), "{description:?}");
        assert!(description.made_with.contains("PyTorch"), "{description:?}");
        let text = description.command + &description.made_with;
        assert!(!text.contains(" /") && !text.contains("home"), "{text}");
    }
}
