//! The header against the library: sizes, offsets, numbers, and the list of functions.

use std::collections::BTreeSet;
use std::mem::{align_of, offset_of, size_of};
use std::process::Command;

use crate::c_hosts::installed::{here, install};
use telltale::{DeviceStruct, Label, Metric, Options, Programs, Status};
use telltale_harness::{Scratch, compile_c, compile_cpp, skip};
use telltale_schema::memory::MemoryKind;

/// The offsets of a structure's fields, as text for the C compiler.
macro_rules! offsets {
    ($rust:ty, $c:literal, $($field:ident),+ $(,)?) => {{
        let mut checks = vec![
            format!("sizeof({}) == {}", $c, size_of::<$rust>()),
            format!("_Alignof({}) == {}", $c, align_of::<$rust>()),
        ];
        $(checks.push(format!(
            "offsetof({}, {}) == {}", $c, stringify!($field), offset_of!($rust, $field)
        ));)+
        checks
    }};
}

fn layout_checks() -> Vec<String> {
    let structures = [
        offsets!(
            Options,
            "telltale_options_s",
            struct_size,
            runtime_name,
            directory,
            root,
            on_problem,
            on_problem_context,
            disabled,
            reserved,
        ),
        offsets!(
            DeviceStruct,
            "telltale_device_s",
            struct_size,
            known,
            logical_id,
            asic_id,
            board_id,
            driver_ordinal,
            pci_domain,
            pci_bus,
            pci_device,
            pci_function,
            location,
            remote,
            galaxy_tray,
            galaxy_nibble,
            reserved,
            architecture,
            dram_channels,
            dram_capacity_bytes,
            l1_per_core_bytes,
            worker_cores,
            grid_columns,
            grid_rows,
            reserved_end,
        ),
        offsets!(
            Programs,
            "telltale_programs_s",
            struct_size,
            cached,
            hits,
            misses,
            loaded,
            loaded_count,
        ),
        offsets!(Label, "telltale_label_s", name, value),
        offsets!(Metric, "telltale_metric_s", struct_size, name, help, unit, labels, label_count,),
    ];
    structures.into_iter().flatten().collect()
}

fn number_checks() -> Vec<String> {
    let kinds = MemoryKind::ALL
        .map(|kind| format!("TELLTALE_{} == {}", kind.name().to_uppercase(), kind.code()));
    let statuses = [
        ("OK", Status::Ok),
        ("NULL_ARGUMENT", Status::NullArgument),
        ("INVALID_ARGUMENT", Status::InvalidArgument),
        ("INTERNAL", Status::Internal),
    ]
    .map(|(name, status)| format!("TELLTALE_{name} == {}", status as i32));
    let sizes = ["status", "memory_kind", "memory_space", "architecture"]
        .map(|name| format!("sizeof(telltale_{name}_e) == {}", size_of::<u32>()));
    kinds.into_iter().chain(statuses).chain(sizes).collect()
}

#[test]
fn the_c_compiler_agrees_on_every_structure_and_number() {
    let scratch = Scratch::new();
    let mut source = "#include <telltale.h>\n".to_owned();
    let versions = [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ];
    let versions = versions.map(|(part, number)| format!("TELLTALE_VERSION_{part} == {number}"));
    let [major, minor, patch] =
        ["MAJOR", "MINOR", "PATCH"].map(|part| format!("TELLTALE_VERSION_{part}"));
    let whole = format!("TELLTALE_VERSION == {major} * 10000 + {minor} * 100 + {patch}");
    let versions = versions.into_iter().chain([whole]);
    for check in layout_checks().into_iter().chain(number_checks()).chain(versions) {
        source.push_str(&format!("_Static_assert({check}, \"{check}\");\n"));
    }
    let file = scratch.join("layout.c");
    std::fs::write(&file, source).unwrap();
    let include = format!("-I{}", here().join("include").display());
    compile_c(&file, &scratch.join("layout.o"), &["-c", "-std=c11", "-pedantic", &include]);
}

#[test]
fn the_header_stands_alone_in_old_c_and_in_cpp() {
    let scratch = Scratch::new();
    let include = format!("-I{}", here().join("include").display());
    let text = "#include <telltale.h>\nint main(void) { return TELLTALE_OK; }\n";
    let (c, cpp) = (scratch.join("alone.c"), scratch.join("alone.cpp"));
    std::fs::write(&c, text).unwrap();
    std::fs::write(&cpp, text).unwrap();
    compile_c(&c, &scratch.join("c"), &["-std=c99", "-pedantic", &include]);
    compile_cpp(&cpp, &scratch.join("cpp"), &["-std=c++11", "-pedantic", &include]);
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header =
        std::fs::read_to_string(here().join("include/telltale.h")).expect("the header is there");
    // PyTorch's two return what it wants.
    ["telltale_status_e telltale_", "void *telltale_", "void telltale_"]
        .into_iter()
        .flat_map(|start| header.split(start).skip(1))
        .filter_map(|rest| rest.split_once('('))
        .map(|(name, _)| format!("telltale_{name}"))
        .collect()
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    const NAME: &str = "capi::the_library_exports_what_the_header_declares_and_nothing_else";
    let scratch = Scratch::new();
    let library = install(&scratch).join("lib/libtelltale.so");
    let mut command = Command::new("nm");
    let Ok(output) = command.args(["-D", "--defined-only"]).arg(library).output() else {
        return skip(NAME, "needs nm from binutils");
    };
    let listing = String::from_utf8(output.stdout).unwrap();
    // The name, with its version behind it; the version itself is listed too.
    let symbols = listing.lines().filter_map(|line| line.split_whitespace().nth(2));
    let exported: BTreeSet<String> = symbols
        .filter_map(|symbol| symbol.split_once("@@"))
        .map(|(name, version)| {
            assert!(version.starts_with("TELLTALE_0."), "{name} is of {version}");
            name.to_owned()
        })
        .collect();
    assert_eq!(exported, declared());
    assert!(listing.contains("telltale_allocate@@TELLTALE_0.1\n"), "{listing}");
    assert!(exported.contains("telltale_allocate"));
}
