//! The libraries' packages, as who compiles against them meets them.

use super::made::{is_tried, made, root};
use super::system::System;

#[test]
fn a_program_is_compiled_with_pkg_config_and_with_cmake() {
    if !is_tried("library::a_program_is_compiled_with_pkg_config_and_with_cmake") {
        return;
    }
    let system = System::debian("bookworm", &["g++", "make", "pkg-config", "cmake"]);
    let before = system.files();
    let packages = ["libtelltale0_", "libtelltale-dev_"]
        .map(|name| system.put(&made(name, "_amd64.deb"), "/packages"));
    system.ok(&format!("apt-get install -y --no-install-recommends {}", packages.join(" ")));
    let source = std::fs::read(root().join("crates/capi/examples/allocator.cpp")).unwrap();
    std::fs::write(system.path("/root/allocator.cpp"), source).unwrap();
    let usage = "cd /root && {program} 2>&1 | grep -q 'usage: '";
    system.ok("cd /root && c++ allocator.cpp $(pkg-config --cflags --libs telltale) -pthread -o allocator");
    system.ok(&usage.replace("{program}", "./allocator"));
    std::fs::write(
        system.path("/root/CMakeLists.txt"),
        "cmake_minimum_required(VERSION 3.18)\nproject(trial CXX)\nfind_package(telltale 0.1 REQUIRED)\n\
         add_executable(shared allocator.cpp)\ntarget_link_libraries(shared PRIVATE telltale::telltale)\n\
         add_executable(static allocator.cpp)\ntarget_link_libraries(static PRIVATE telltale::telltale_static)\n",
    )
    .unwrap();
    system.ok("cd /root && cmake -S . -B build && cmake --build build");
    system.ok(&usage.replace("{program}", "build/shared"));
    system.ok(&usage.replace("{program}", "build/static"));
    system.ok("cd /root && pkg-config --exists telltale-nrt && rm -r allocator build CMakeLists.txt allocator.cpp");

    system.ok("apt-get purge -y libtelltale-dev libtelltale0");
    let after = system.files();
    let differs = |file: &&String| !before.contains(file);
    assert_eq!(after.iter().filter(differs).collect::<Vec<_>>(), Vec::<&String>::new());
}
