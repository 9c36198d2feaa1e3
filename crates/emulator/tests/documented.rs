//! docs/kernels.md has each call of a kernel, and its examples compile.

use std::collections::BTreeSet;
use std::fs;

use telltale_harness::{Scratch, code_blocks, compile_c};

const PAGE: &str = include_str!("../../../docs/kernels.md");
const DEBUG_STREAM: &str = include_str!("../../../docs/debug-stream.md");
const HEADERS: [&str; 2] =
    [include_str!("../src/kernels/kernel_api.h"), include_str!("../src/kernels/kernel_print.h")];

/// The name that a line of a header gives to kernels: of a macro, a type or an inline function.
fn given(line: &str) -> Option<&str> {
    let start = [
        "#define ",
        "static inline float ",
        "static inline void ",
        "static inline bf16_t ",
        "typedef uint16_t ",
    ]
    .iter()
    .find_map(|start| line.strip_prefix(start))?;
    let end = start.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = &start[..end.unwrap_or(start.len())];
    // What begins like this is how others are made.
    let is_own = ["telltale_", "TELLTALE_"].iter().any(|own| name.starts_with(own));
    (!is_own && !name.is_empty()).then_some(name)
}

/// The names in `code` that look like a call's or a constant's.
fn named() -> BTreeSet<&'static str> {
    let spans = PAGE.split('`').skip(1).step_by(2);
    let names = spans
        .flat_map(|span| span.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    names.filter(|name| is_call(name)).collect()
}

fn is_call(name: &str) -> bool {
    ["get_", "cb_", "noc_", "device_print_", "TILE_"].iter().any(|start| name.starts_with(start))
}

#[test]
fn each_call_is_on_the_page_and_each_on_the_page_is_one() {
    let lines = HEADERS.iter().flat_map(|header| header.lines());
    let given: BTreeSet<&str> = lines.filter_map(given).collect();
    assert!(given.len() > 40, "{given:?}");
    let named = named();
    let is_call = |name: &&&str| is_call(name);
    let missing: Vec<_> =
        given.iter().filter(is_call).filter(|name| !named.contains(**name)).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    let other: Vec<_> = given.iter().filter(|name| !PAGE.contains(**name)).collect();
    assert!(other.is_empty(), "not on the page: {other:?}");
    let unknown: Vec<_> = named.into_iter().filter(|name| !given.contains(name)).collect();
    assert!(unknown.is_empty(), "no calls: {unknown:?}");
}

#[test]
fn the_kernels_of_the_pages_compile() {
    let scratch = Scratch::new();
    let blocks = code_blocks(PAGE, "c").into_iter().chain(code_blocks(DEBUG_STREAM, "c"));
    let kernels: Vec<&str> = blocks.filter(|block| block.contains("KERNEL_MAIN")).collect();
    assert_eq!(kernels.len(), 2);
    for (number, kernel) in kernels.iter().enumerate() {
        let source = scratch.join(format!("{number}.c"));
        fs::write(&source, format!("{}\n{}\n{kernel}\n", HEADERS[0], HEADERS[1])).unwrap();
        // As the emulator compiles: the headers are not without warnings of their own.
        compile_c(&source, &scratch.join("kernel.o"), &["-c", "-w", "-std=gnu11"]);
    }
}
