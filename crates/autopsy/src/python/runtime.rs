//! Where a process has its interpreter: `_PyRuntime`, which every program and library with CPython exports.

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use procfs::process::{MMPermissions, MMapPath, Process};

use super::layout::{PythonLayout, TABLE_BYTES};
use crate::mapped::{load_bias, mapped_file};
use crate::memory;

/// An interpreter in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundRuntime {
    /// The address of `_PyRuntime`.
    pub(super) address: u64,
    pub(super) layout: PythonLayout,
    /// `PY_VERSION_HEX`, or major and minor version of it where no more is known.
    pub(super) version: u32,
}

/// Finds the interpreter of a process; none where no file with one is mapped.
pub(super) fn find(process: &Process) -> Option<Result<FoundRuntime, String>> {
    let pid = process.pid().unsigned_abs();
    let maps = process.maps().ok()?.0;
    let programs = maps.iter().filter(|map| map.perms.contains(MMPermissions::EXECUTE));
    let mut last = None;
    for map in programs {
        let MMapPath::Path(path) = &map.pathname else { continue };
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.starts_with("python") && !name.starts_with("libpython") && !is_program(pid, path) {
            continue;
        }
        let Some(file) = mapped_file(pid, path, &(map.address.0..map.address.1)) else { continue };
        let Ok(elf) = ElfFile64::<object::Endianness>::parse(&file[..]) else { continue };
        let Some(bias) = load_bias(&elf, map.address.0, map.offset) else { continue };
        let address = |wanted: &str| {
            let mut symbols = elf.dynamic_symbols().chain(elf.symbols());
            let found = symbols.find(|symbol| {
                symbol.is_definition() && symbol.name().is_ok_and(|name| name == wanted)
            })?;
            Some(found.address().wrapping_add(bias))
        };
        let Some(runtime) = address("_PyRuntime") else { continue };
        let version = address("Py_Version").and_then(|version| memory::number(pid, version));
        match describe(pid, runtime, version.or_else(|| named(name))) {
            Ok(found) => return Some(Ok(found)),
            Err(why) => last = Some(Err(why)),
        }
    }
    last
}

fn is_program(pid: u32, path: &std::path::Path) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == path)
}

fn describe(pid: u32, address: u64, version: Option<u32>) -> Result<FoundRuntime, String> {
    let mut table = [0; TABLE_BYTES];
    let read = memory::read(pid, address, &mut table);
    if read == 0 {
        return Err("its memory may not be read: Operation not permitted".to_owned());
    }
    if let Some((layout, version)) = PythonLayout::described(&table[..read]) {
        return Ok(FoundRuntime { address, layout, version });
    }
    let Some(version) = version else {
        return Err("the version of its CPython is not known".to_owned());
    };
    let minor = version >> 16 & 0xff;
    match PythonLayout::of(minor).filter(|_| version >> 24 == 3) {
        Some(layout) => Ok(FoundRuntime { address, layout, version }),
        None => Err(format!(
            "CPython {}.{minor} keeps its stacks in a way that is not known; 3.8 to 3.14 with the interpreter's lock are",
            version >> 24
        )),
    }
}

/// The version in `python3.8` or `libpython3.10.so.1.0`.
fn named(file: &str) -> Option<u32> {
    let digits = file.split_once("python3.")?.1;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let minor: u32 = digits[..end].parse().ok()?;
    Some(3 << 24 | (minor & 0xff) << 16)
}
