//! What a linker needs of `libgcc_s.so.1`, which each system has and zig does not: the names of its unwinder.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{DistError, Release, run};

/// Where it is laid out, by processor.
const PLACE: &str = "target/stage/unwinder";
/// As programs ask for it.
const NAME: &str = "libgcc_s.so.1";
/// What Rust's standard library and its frames call.
const FUNCTIONS: [&str; 14] = [
    "Backtrace",
    "DeleteException",
    "FindEnclosingFunction",
    "GetCFA",
    "GetDataRelBase",
    "GetIP",
    "GetIPInfo",
    "GetLanguageSpecificData",
    "GetRegionStart",
    "GetTextRelBase",
    "RaiseException",
    "Resume",
    "SetGR",
    "SetIP",
];

/// Makes a library with these names and nothing behind them, and returns its directory.
pub(super) fn names(release: &Release) -> Result<PathBuf, DistError> {
    let place = release.root.join(PLACE).join(release.target.name());
    fs::create_dir_all(&place).map_err(DistError::file(&place))?;
    let mut text = String::new();
    for name in FUNCTIONS {
        let _ = writeln!(text, "void _Unwind_{name}(void) {{}}");
    }
    let source = place.join("names.c");
    fs::write(&source, text).map_err(DistError::file(&source))?;
    let mut compiler = Command::new(release.tools.c_compiler(release.target)?);
    compiler.args(["-shared", "-nostdlib"]).arg(format!("-Wl,-soname,{NAME}"));
    run(compiler.arg("-o").arg(place.join(NAME)).arg(&source))?;
    Ok(place)
}
