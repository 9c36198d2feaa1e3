//! The headers against the published layout and against the library.

use std::collections::BTreeSet;
use std::mem::{align_of, offset_of, size_of};
use std::path::Path;
use std::process::Command;

use crate::c_programs::installed::{here, install};
use telltale_harness::{Scratch, compile_c, compile_cpp, skip};
use telltale_nrt::{CoreCounts, DebugCounts, EventHeader, GLANCE_CORES, STATUSES, TensorPayload};

fn include(option: &str) -> String {
    format!("{option}{}", here().join("include").display())
}

#[test]
fn the_published_layout_holds_in_c_and_in_cpp() {
    let scratch = Scratch::new();
    let source = here().join("tests/c/layout.c");
    let cpp = scratch.join("layout.cpp");
    std::fs::copy(&source, &cpp).unwrap();
    let includes = include("-I");
    compile_c(&source, &scratch.join("c.o"), &["-c", "-std=c11", "-pedantic", &includes]);
    compile_cpp(&cpp, &scratch.join("cpp.o"), &["-c", "-std=c++11", &includes]);
}

#[test]
fn the_library_and_the_headers_agree_on_every_structure_and_status() {
    let mut checks = vec![
        format!("sizeof(ndebug_stream_event_header_t) == {}", size_of::<EventHeader>()),
        format!("_Alignof(ndebug_stream_event_header_t) == {}", align_of::<EventHeader>()),
        format!("sizeof(telltale_debug_counts_s) == {}", size_of::<DebugCounts>()),
        format!("sizeof(telltale_debug_core_s) == {}", size_of::<CoreCounts>()),
        format!("TELLTALE_DEBUG_GLANCE_CORES == {GLANCE_CORES}"),
        format!(
            "offsetof(ndebug_stream_event_header_t, type) == {}",
            offset_of!(EventHeader, event_type)
        ),
    ];
    macro_rules! offsets {
        ($rust:ty, $c:literal, $($field:ident),+) => {$(
            checks.push(format!(
                "offsetof({}, {}) == {}", $c, stringify!($field), offset_of!($rust, $field)
            ));
        )+};
    }
    offsets!(EventHeader, "ndebug_stream_event_header_t", data_size, reserved);
    offsets!(
        TensorPayload,
        "ndebug_stream_payload_debug_tensor_read_t",
        prefix,
        logical_nc_id,
        pipe,
        tensor_dtype,
        tensor_shape,
        tensor_data_size,
        reserved0
    );
    offsets!(
        DebugCounts,
        "telltale_debug_counts_s",
        produced,
        delivered,
        waiting,
        unread,
        dropped_events,
        dropped_bytes,
        dropped_memory
    );
    let payload = size_of::<TensorPayload>();
    checks.push(format!(
        "offsetof(ndebug_stream_payload_debug_tensor_read_t, tensor_data) == {payload}"
    ));
    checks.extend(STATUSES.map(|(number, name)| format!("{} == {number}", name.to_str().unwrap())));

    let mut source = "#include <nrt/ndebug_stream.h>\n#include <telltale_debug.h>\n".to_owned();
    for check in checks {
        source.push_str(&format!("_Static_assert({check}, \"{check}\");\n"));
    }
    let scratch = Scratch::new();
    let file = scratch.join("agree.c");
    std::fs::write(&file, source).unwrap();
    compile_c(&file, &scratch.join("agree.o"), &["-c", "-std=c11", "-pedantic", &include("-I")]);
}

#[test]
fn each_header_stands_alone_however_it_is_included() {
    let scratch = Scratch::new();
    for (at, header) in ["nrt/ndebug_stream.h", "nrt/nrt_status.h", "nrt/nrt.h", "telltale_debug.h"]
        .into_iter()
        .enumerate()
    {
        // Bazel has a directory for quotes only, which angle brackets do not search.
        for (quotes, option) in
            [(["<", ">"], "-I"), (["<", ">"], "-isystem"), (["\""; 2], "-iquote")]
        {
            let text = format!("#include {}{header}{}\nint unused;\n", quotes[0], quotes[1]);
            let [c, cpp] = ["c", "cpp"].map(|kind| scratch.join(format!("{at}.{kind}")));
            std::fs::write(&c, &text).unwrap();
            std::fs::write(&cpp, &text).unwrap();
            let (out, option) = (scratch.join("out.o"), include(option));
            compile_c(&c, &out, &["-c", "-std=c99", "-pedantic", &option]);
            compile_cpp(&cpp, &out, &["-c", "-std=c++11", "-pedantic", &option]);
        }
    }
}

/// The functions and variables that the headers declare.
fn declared() -> BTreeSet<String> {
    let text = |name: &str| {
        std::fs::read_to_string(here().join("include").join(name)).expect("the header is there")
    };
    ["nrt/ndebug_stream.h", "nrt/nrt_status.h", "nrt/nrt.h", "telltale_debug.h"]
        .into_iter()
        .flat_map(|name| {
            let text = text(name);
            let declarations = text.lines().filter(|line| {
                ["NRT_STATUS ", "void ", "const char *", "extern unsigned "]
                    .iter()
                    .any(|start| line.starts_with(start))
            });
            let names = declarations
                .filter_map(|line| line.split_once(['(', ';']))
                .map(|(before, _)| before.rsplit([' ', '*']).next().expect("a name").to_owned());
            names.collect::<Vec<_>>()
        })
        .collect()
}

fn exported(library: &Path) -> Option<BTreeSet<String>> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().ok()?;
    let listing = String::from_utf8(output.stdout).expect("names are text");
    let names = listing.lines().filter_map(|line| line.split_whitespace().nth(2));
    Some(names.map(str::to_owned).collect())
}

#[test]
fn the_library_exports_what_the_headers_declare_and_nothing_else() {
    let scratch = Scratch::new();
    let library = install(&scratch).join("lib/libtelltale_nrt.so");
    let Some(exported) = exported(&library) else {
        let test = "nrt::the_library_exports_what_the_headers_declare_and_nothing_else";
        return skip(test, "needs nm from binutils");
    };
    assert_eq!(exported, declared());
    assert_eq!(exported.len(), 12);
}
