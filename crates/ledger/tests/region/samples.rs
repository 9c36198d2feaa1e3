//! Sample regions, made and dumped by a C program (`layouts.c`) that knows only the structs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use telltale_harness::{Scratch, compile_c};
use telltale_ledger::region::{
    LayoutVariant, Now, Region, RegionReadError, RegionReading, file_name, read,
};

/// The present in all tests that compare ages.
pub(crate) const NOW: Now =
    Now { monotonic_ns: 1_000_000_000_000, epoch_ns: 1_800_000_000_000_000_000 };

/// The id of sample regions.
pub(crate) const ID: u64 = 469_504;

/// The C program's word for a layout.
pub(crate) fn word(variant: LayoutVariant) -> &'static str {
    match variant {
        LayoutVariant::V1 => "v1",
        LayoutVariant::V1WithoutKernel => "v1_without_kernel",
        LayoutVariant::V1Unpadded => "v1_unpadded",
        LayoutVariant::V2 => "v2",
        LayoutVariant::V3 => "v3",
        LayoutVariant::V4 => "v4",
    }
}

/// Runs the C program.
pub(crate) fn layouts(arguments: &[&str]) -> Output {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/region/layouts.c");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("region-layouts");
        compile_c(&source, &out, &["-std=c11"])
    });
    let output = Command::new(program).args(arguments).output().expect("the C program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {errors}", output.status);
    output
}

/// Makes the region `id` of this layout in `directory`; `fields` are assignments, separated by
/// white space. The version is set; version 4 is ready.
pub(crate) fn make(directory: &Path, id: u64, variant: LayoutVariant, fields: &str) -> PathBuf {
    let path = directory.join(file_name(id));
    let file = path.to_str().expect("a scratch path is text");
    let number = match variant {
        LayoutVariant::V2 => 2,
        LayoutVariant::V3 => 3,
        LayoutVariant::V4 => 4,
        _ => 1,
    };
    let version = format!("version={number}");
    let mut arguments = vec!["make", word(variant), file, &version];
    if number == 4 {
        arguments.push("init_state=1380271193");
    }
    arguments.extend(fields.split_whitespace());
    layouts(&arguments);
    path
}

/// Makes a region with these fields and reads it.
pub(crate) fn sample(variant: LayoutVariant, fields: &str) -> Region {
    reading(variant, fields).expect("the sample is a region").region
}

/// Makes a region with these fields and tries to read it.
pub(crate) fn reading(
    variant: LayoutVariant,
    fields: &str,
) -> Result<RegionReading, RegionReadError> {
    let scratch = Scratch::new();
    make(scratch.path(), ID, variant, fields);
    read(scratch.path(), ID, NOW)
}

/// The non-zero fields of a region file, as the C program reads it: "FIELD VALUE" lines.
pub(crate) fn dump(path: &Path, variant: LayoutVariant) -> Vec<String> {
    let output = layouts(&["dump", word(variant), path.to_str().expect("a scratch path is text")]);
    let text = String::from_utf8(output.stdout).expect("the C program prints text");
    text.lines().map(str::to_owned).collect()
}
