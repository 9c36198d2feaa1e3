//! `find_package(telltale)`, in a tree that was moved after it was installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::c_hosts::installed::{here, installer};
use telltale_harness::{Scratch, skip};

const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.13)
project(allocator CXX)
find_package(telltale ${WANTED} REQUIRED)
find_package(telltale ${WANTED} REQUIRED)
find_package(Threads REQUIRED)
foreach(kind telltale telltale_static)
    add_executable(with_${kind} ${SOURCE})
    target_link_libraries(with_${kind} PRIVATE telltale::${kind} Threads::Threads)
endforeach()
";

/// Configures the project for a version of the library below `prefix`; none where there is no CMake.
fn configure(scratch: &Scratch, prefix: &Path, wanted: &str) -> Option<Output> {
    let (project, build) = (scratch.join("project"), scratch.join(format!("build-{wanted}")));
    fs::create_dir_all(&project).expect("a scratch directory");
    fs::write(project.join("CMakeLists.txt"), PROJECT).expect("a scratch file");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&project).arg("-B").arg(&build).arg(format!("-DWANTED={wanted}"));
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    // Debian's CMake does not look there by itself.
    if prefix.join("lib64").is_dir() {
        cmake.arg(format!("-Dtelltale_DIR={}", prefix.join("lib64/cmake/telltale").display()));
    }
    cmake.arg(format!("-DSOURCE={}", here().join("examples/allocator.cpp").display()));
    let output = cmake.output().ok();
    if output.is_none() {
        skip("capi::a_cmake_project_finds_the_library", "needs cmake");
    }
    output
}

#[test]
fn a_cmake_project_finds_the_library() {
    let scratch = Scratch::new();
    for library in ["lib", "lib64"] {
        let (made, prefix) = (scratch.join("made"), scratch.join(format!("moved-{library}")));
        let output = installer(&made).env("LIBDIR", library).output().expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(made, &prefix).expect("it is moved");
        let scratch = Scratch::new();
        let Some(configured) = configure(&scratch, &prefix, env!("CARGO_PKG_VERSION")) else {
            return;
        };
        assert!(configured.status.success(), "{}", String::from_utf8_lossy(&configured.stderr));
        let build = scratch.join(concat!("build-", env!("CARGO_PKG_VERSION")));
        let built =
            Command::new("cmake").arg("--build").arg(&build).output().expect("it was there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
        for kind in ["telltale", "telltale_static"] {
            let program = build.join(format!("with_{kind}"));
            let output = Command::new(program).output().expect("it was built");
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(words.contains("usage: "), "it runs, and wants a directory: {output:?}");
        }
        for wanted in ["0.2", "1.0"] {
            let refused = configure(&scratch, &prefix, wanted).expect("it was there");
            let words = String::from_utf8_lossy(&refused.stderr);
            let is_refused = !refused.status.success() && words.contains("version");
            assert!(is_refused, "{wanted}: {words}");
        }
        for wanted in ["0.0", "0.1"] {
            let earlier = configure(&scratch, &prefix, wanted).expect("it was there");
            assert!(earlier.status.success(), "{}", String::from_utf8_lossy(&earlier.stderr));
        }
    }
}
