//! The C and C++ of docs/integrate.md compiles, and does what the page says.

use std::fs;
use std::process::{Command, Stdio};

use telltale_harness::{Scratch, code_blocks, compile_cpp, skip};

use crate::c_hosts::installed::{Linked, here, install, program};

const PAGE: &str = include_str!("../../../../docs/integrate.md");

#[test]
fn the_counter_in_c_compiles_and_is_registered() {
    let scratch = Scratch::new();
    let [counter] = code_blocks(PAGE, "c")[..] else { panic!("the page has one program in C") };
    let source = scratch.join("counter.c");
    fs::write(&source, counter).unwrap();
    let program = program(source.to_str().unwrap(), &install(&scratch), Linked::Shared);
    let output = Command::new(program)
        .env("TT_METRICS_SOCKET_DIR", scratch.join("run"))
        .env_remove("TELLTALE_DISABLED")
        .output()
        .unwrap();
    let [said, problems] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && said.is_empty() && problems.is_empty(), "{said}{problems}");
}

/// The page's commands that compile the example, as a shell runs them.
#[test]
fn the_example_is_compiled_by_the_commands_of_the_page() {
    if Command::new("pkg-config").arg("--version").output().is_err() {
        skip("capi::c_hosts::documented::the_example_is_compiled", "needs pkg-config");
        return;
    }
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let root = here().join("../..");
    let blocks = code_blocks(PAGE, "sh").into_iter();
    let compiling: Vec<&str> =
        blocks.filter_map(|block| Some(&block[block.find("c++ ")?..])).collect();
    assert_eq!(compiling.len(), 2, "against the shared library, and the static one");
    for command in compiling {
        let out = scratch.join("allocator");
        let command = command.replace("crates/capi", &format!("{}/crates/capi", root.display()));
        let compiled = Command::new("sh")
            .args(["-ec", &command])
            .current_dir(scratch.path())
            .env("PREFIX", &prefix)
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let directory = scratch.join("run");
        let _ = fs::create_dir(&directory);
        let ran = Command::new(&out).arg(&directory).stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        fs::remove_file(out).unwrap();
    }
}

/// The page's pieces, each where its comment says: a member, the bodies of two methods, and a class.
#[test]
fn the_wiring_of_tt_metal_compiles() {
    let scratch = Scratch::new();
    let [device, processor] = code_blocks(PAGE, "cpp")[..] else {
        panic!("the page has the device and the processor")
    };
    let (member, bodies) = device.split_once("\n// tt_metal/impl/device/device.cpp").unwrap();
    let (_, bodies) = bodies.split_once('\n').unwrap();
    let (open, close) = bodies.split_once("\n// in Device::close").unwrap();
    let (_, close) = close.split_once('\n').unwrap();
    let text = format!(
        "#include \"tt_metal.hpp\"\n\
         struct Device : DeviceBase {{\n{member}\nvoid initialize();\nvoid close();\n}};\n\
         void Device::initialize() {{\n{open}\n}}\n\
         void Device::close() {{\n{close}\n}}\n\
         telltale_memory_kind_e kind_of(const Buffer *buffer);\n\
         {processor}\n"
    );
    let source = scratch.join("wiring.cpp");
    fs::write(&source, text).unwrap();
    let includes = ["include", "tests/c"].map(|name| format!("-I{}", here().join(name).display()));
    compile_cpp(
        &source,
        &scratch.join("wiring.o"),
        &[
            "-c",
            "-std=c++17",
            "-Wno-unused-parameter",
            "-Wno-return-type",
            &includes[0],
            &includes[1],
        ],
    );
}
