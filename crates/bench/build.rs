//! Compiles the seed's own design, the baseline, the way its authors would ship it: C++17 at -O2.

const SOURCES: [&str; 8] = [
    "src/seed/region.cpp",
    "src/seed/call_site.cpp",
    "src/seed/tracker.cpp",
    "src/seed/process.cpp",
    "src/seed/server.cpp",
    "src/seed/collector.cpp",
    "src/seed/program_flow.cpp",
    "src/seed/program_by_hand.cpp",
];
const HEADERS: [&str; 3] = ["src/seed/region.hpp", "src/seed/protocol.hpp", "src/seed/program.hpp"];

fn main() {
    for path in SOURCES.iter().chain(&HEADERS) {
        println!("cargo::rerun-if-changed={path}");
    }
    // The level is fixed: a debug build of the tests must exercise the same code as a benchmark.
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .define("NDEBUG", None)
        .flag("-pthread")
        .files(SOURCES)
        .compile("telltale_bench_seed");
}
