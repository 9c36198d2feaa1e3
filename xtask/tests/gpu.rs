//! `cargo xtask gpu` on a machine whose GPUs, driver, PyTorch and NCCL are stand-ins: everything else is what it would be.

mod stand_in;

use std::process::{Command, Output};

use telltale_harness::{Scratch, needs_pid_namespaces, python_with};
use xtask::gpu::programs::Programs;

use stand_in::StandIn;

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Whether the stand-in can be seen here, and the scripts run.
fn can_run(test: &str) -> bool {
    needs_pid_namespaces(test) && python_with(test, "ctypes").is_some()
}

/// The verdict in the line of the table that begins with these cells.
fn verdict<'a>(table: &'a str, cells: &str) -> &'a str {
    let line = table.lines().find(|line| line.starts_with(&format!("| {cells} |")));
    let line = line.unwrap_or_else(|| panic!("no line of {cells}:\n{table}"));
    line.trim_end_matches(" |").rsplit(" | ").next().unwrap()
}

#[test]
fn everything_agrees_where_all_report_the_same() {
    if !can_run("gpu::everything_agrees_where_all_report_the_same") {
        return;
    }
    let output = StandIn::new().compare(&[]);
    let (table, said) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{table}\n{said}");
    assert!(table.starts_with("2 × NVIDIA A100-SXM4-80GB and NVIDIA GeForce RTX 4090, driver 580.95.05, PyTorch 0.0-stand-in, NCCL 2.28.3, Telltale 0123abc, 20"), "{table}");
    for cells in [
        "0, and 1 more | power.draw",
        "0, and 1 more | nvlink -s, links up",
        "0 | compute-apps: used_gpu_memory",
        " | NCCL, ranks",
        " | torch.distributed.all_reduce, calls",
    ] {
        assert_eq!(verdict(&table, cells), "agrees", "{table}");
    }
    // By an older name, which this one has for it.
    let reasons = "sw_power_cap sw_thermal_slowdown";
    let line = format!(
        "| 0, and 1 more | clocks_event_reasons.active | {reasons} | throttled_by | {reasons} | agrees |"
    );
    assert!(table.contains(&line), "{table}");
    let unknown = "skipped: this nvidia-smi does not know ecc.errors.uncorrected.aggregate.sram";
    assert_eq!(verdict(&table, "0, and 1 more | ecc.errors.uncorrected.aggregate.sram"), unknown);
}

#[test]
fn a_value_that_differs_is_named_and_what_needs_pytorch_is_not_checked() {
    if !can_run("gpu::a_value_that_differs_is_named_and_what_needs_pytorch_is_not_checked") {
        return;
    }
    let machine = StandIn::new();
    let output = machine.compare(&[("STAND_IN_TORCH", "none")]);
    let (table, said) = text(&output);
    assert_eq!(output.status.code(), Some(3), "{table}\n{said}");
    for cells in [" | PyTorch's memory_reserved()", " | NCCL, ranks"] {
        assert!(verdict(&table, cells).starts_with("**not checked**: "), "{table}");
    }
    assert!(said.contains("has no PyTorch (No module named 'torch'): pip install torch"), "{said}");

    machine.write("smi/gpu1/power.max_limit", "601.00\n");
    machine.write("smi/gpu0/fan.speed", "30\n");
    let output = machine.compare(&[("STAND_IN_TORCH", "none")]);
    let (table, said) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{table}\n{said}");
    let named = [
        "GPU 1: power.max_limit 601, power_limit_max_watts 600: **differs**: by more than 0.01 (it has two digits)",
        "GPU 0: fan.speed 30, fan_ratio ",
    ];
    for line in named {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(said.matches("**differs**").count(), 2, "{said}");
    assert_eq!(verdict(&table, "0 | power.max_limit"), "agrees");
}

#[test]
fn memory_that_the_allocator_has_and_the_ledger_has_not_is_named() {
    if !can_run("gpu::memory_that_the_allocator_has_and_the_ledger_has_not_is_named") {
        return;
    }
    let output = StandIn::new().compare(&[("STAND_IN_MORE", "104857600")]);
    let (table, said) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{table}\n{said}");
    let differs = verdict(&table, "0 | PyTorch's memory_reserved()");
    assert_eq!(differs, "**differs**: by 100.0 MiB, more than 1 %", "{table}");
    assert_eq!(verdict(&table, "0 | compute-apps: used_gpu_memory"), "agrees", "{table}");
}

#[test]
fn every_field_that_differs_is_found() {
    if !can_run("gpu::every_field_that_differs_is_found") {
        return;
    }
    let machine = StandIn::new();
    let altered = machine.alter();
    let output = machine.compare(&[("STAND_IN_TORCH", "none")]);
    let (table, said) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for field in &altered {
        // The row has the newer name.
        let name = field.replace("clocks_throttle_reasons", "clocks_event_reasons");
        assert!(verdict(&table, &format!("0 | {name}")).starts_with("**differs**"), "{table}");
    }
    assert_eq!(said.matches("**differs**").count(), altered.len(), "{said}");
}

#[test]
fn a_part_that_fails_is_named_and_the_others_are_kept() {
    if !can_run("gpu::a_part_that_fails_is_named_and_the_others_are_kept") {
        return;
    }
    let output = StandIn::new().compare(&[("STAND_IN_TORCH", "broken")]);
    let (table, said) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{table}\n{said}");
    assert_eq!(verdict(&table, "0, and 1 more | power.draw"), "agrees");
    for cells in [" | PyTorch's memory_reserved()", " | NCCL, ranks"] {
        let failed = verdict(&table, cells);
        assert!(
            failed.contains("RuntimeError: CUDA error: out of memory (exit status: 1); "),
            "{failed}"
        );
    }
}

#[test]
fn without_a_gpu_the_error_names_step_cause_and_remedy() {
    let empty = Scratch::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = command.arg("gpu").env("PATH", empty.path()).output().unwrap();
    let (table, said) = text(&output);
    assert_eq!((output.status.code(), table.as_str()), (Some(1), ""), "{said}");
    assert_eq!(
        said,
        "error: cannot compare with a GPU: there is no program nvidia-smi; run this where NVIDIA's driver and nvidia-smi \
         are; cargo xtask gpu --into DIR fills a folder to take there\n"
    );
}

#[test]
fn a_folder_has_all_that_a_machine_without_the_repository_needs() {
    let (built, folder) = (Scratch::new(), Scratch::new());
    for name in ["one", "two", "three", "four"] {
        std::fs::write(built.join(name), name).unwrap();
    }
    let programs = Programs {
        telltale: built.join("one"),
        preload: built.join("two"),
        nccl: built.join("three"),
        commit: String::from("0123abc-dirty"),
    };
    let missing = Programs::in_folder(folder.path()).unwrap_err();
    assert!(missing.ends_with("has no commit; fill it with cargo xtask gpu --into"), "{missing}");
    for _ in 0..2 {
        programs.copy(&built.join("four"), folder.path()).unwrap();
    }
    let found = Programs::in_folder(folder.path()).unwrap();
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!([found.telltale, found.preload, found.nccl].map(read), ["one", "two", "three"]);
    assert_eq!(
        (read(folder.join("xtask")).as_str(), found.commit.as_str()),
        ("four", "0123abc-dirty")
    );
    assert!(read(folder.join("README")).contains("./xtask gpu --programs ."));
}
