//! Mapped libraries whose versions decide how a job communicates, with the digest that their linker gave
//! them (the GNU build id): what two ranks must have in common.

use std::collections::BTreeMap;
use std::path::PathBuf;

use object::Object;
use object::read::elf::ElfFile64;
use procfs::process::{MMapPath, Process};
use serde::{Deserialize, Serialize};

use crate::bounds::bounded;
use crate::mapped::mapped_file;

/// Libraries that are listed, by the start of their file's name.
const NAMES: [&str; 14] = [
    "libnccl",
    "librccl",
    "libtorch_cpu",
    "libtorch_cuda",
    "libtorch_python",
    "libtorch.",
    "libcuda.",
    "libcudart",
    "libmpi.",
    "libfabric",
    "libucp",
    "libnccom",
    "libnrt",
    "libtt_metal",
];

/// A mapped library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Library {
    /// Its path, as the process sees it.
    pub path: String,
    /// Its build id in hexadecimal digits; none where it was linked without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

pub(super) fn of(process: &Process) -> Vec<Library> {
    let maps = process.maps().map(|maps| maps.0).unwrap_or_default();
    let mut first: BTreeMap<PathBuf, (u64, u64)> = BTreeMap::new();
    for map in maps {
        if let MMapPath::Path(path) = map.pathname
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
            && NAMES.iter().any(|known| name.starts_with(known))
        {
            first.entry(path).or_insert(map.address);
        }
    }
    let pid = process.pid().unsigned_abs();
    let library = |(path, (start, end)): (PathBuf, (u64, u64))| {
        let file = mapped_file(pid, &path, &(start..end));
        let build_id = file.and_then(|file| {
            let elf = ElfFile64::<object::Endianness>::parse(&file[..]).ok()?;
            let id = elf.build_id().ok()??;
            Some(id.iter().take(32).map(|byte| format!("{byte:02x}")).collect())
        });
        Library { path: bounded(&path.to_string_lossy()), build_id }
    };
    first.into_iter().map(library).collect()
}
