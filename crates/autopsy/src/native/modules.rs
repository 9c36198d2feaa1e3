//! Files that a process has mapped as programs, with where each lies and how to unwind it.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder, UnwinderNative};
use memmap2::Mmap;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use procfs::process::{MMPermissions, MMapPath, Process};

use crate::mapped::{load_bias, mapped_file};

/// Mapped files that are read; a training job with PyTorch has some three hundred.
const MAX_MODULES: usize = 4096;

/// A part of a mapped file.
#[derive(Clone)]
pub(super) struct Section {
    file: Arc<Mmap>,
    range: Range<usize>,
}

impl Deref for Section {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.file[self.range.clone()]
    }
}

/// One mapped program or library.
pub(super) struct MappedModule {
    /// Its file name, without the folder.
    pub(super) name: String,
    /// Where it lies in the process.
    pub(super) range: Range<u64>,
    /// What is added to an address of the file to get one of the process.
    pub(super) bias: u64,
    /// Its bytes; none where the file could not be read.
    pub(super) file: Option<Arc<Mmap>>,
}

/// What a process has mapped.
pub(crate) struct Modules {
    /// By their first address.
    pub(super) mapped: BTreeMap<u64, MappedModule>,
    pub(super) unwinder: UnwinderNative<Section, framehop::MayAllocateDuringUnwind>,
}

impl Modules {
    /// Reads what a process has mapped; what cannot be read is left out.
    pub(super) fn of(pid: u32) -> Self {
        let mut modules = Self { mapped: BTreeMap::new(), unwinder: UnwinderNative::new() };
        for (path, places) in mapped_files(pid).into_iter().take(MAX_MODULES) {
            modules.add(pid, &path, &places);
        }
        modules
    }

    /// The module that an address lies in.
    pub(super) fn at(&self, address: u64) -> Option<&MappedModule> {
        let module = self.mapped.range(..=address).next_back()?.1;
        module.range.contains(&address).then_some(module)
    }

    fn add(&mut self, pid: u32, path: &Path, places: &[MappedPart]) {
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
        let range = first.addresses.start..last.addresses.end;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = crate::bounds::bounded(name.trim_end_matches(" (deleted)"));
        let file = mapped_file(pid, path, &first.addresses).map(Arc::new);
        let elf =
            file.as_ref().and_then(|file| ElfFile64::<object::Endianness>::parse(&file[..]).ok());
        let program = places.iter().find(|one| one.is_program);
        let bias = elf
            .as_ref()
            .zip(program)
            .and_then(|(elf, program)| load_bias(elf, program.addresses.start, program.offset));
        if let (Some(elf), Some(file), Some(bias)) = (&elf, &file, bias) {
            let information = section_information(elf, file);
            let module = Module::new(name.clone(), range.clone(), bias, information);
            self.unwinder.add_module(module);
        }
        drop(elf);
        let bias = bias.unwrap_or(range.start);
        self.mapped.insert(range.start, MappedModule { name, range, bias, file });
    }
}

/// Where a part of a file is mapped.
struct MappedPart {
    addresses: Range<u64>,
    offset: u64,
    is_program: bool,
}

/// The files that have an executable part mapped, with all their parts.
fn mapped_files(pid: u32) -> Vec<(PathBuf, Vec<MappedPart>)> {
    let maps = i32::try_from(pid).ok().and_then(|pid| Process::new(pid).ok()?.maps().ok());
    let mut files: BTreeMap<(PathBuf, u64), Vec<MappedPart>> = BTreeMap::new();
    for map in maps.into_iter().flat_map(|maps| maps.0) {
        let MMapPath::Path(path) = map.pathname else { continue };
        let place = MappedPart {
            addresses: map.address.0..map.address.1,
            offset: map.offset,
            is_program: map.perms.contains(MMPermissions::EXECUTE),
        };
        files.entry((path, map.inode)).or_default().push(place);
    }
    let programs = files.into_iter().filter(|(_, places)| places.iter().any(|one| one.is_program));
    programs.map(|((path, _), places)| (path, places)).collect()
}

fn section_information(
    elf: &ElfFile64<'_>,
    file: &Arc<Mmap>,
) -> ExplicitModuleSectionInfo<Section> {
    let range = |name: &str| {
        let section = elf.section_by_name(name)?;
        Some(section.address()..section.address().checked_add(section.size())?)
    };
    let data = |name: &str| {
        let (start, length) = elf.section_by_name(name)?.file_range()?;
        let start = usize::try_from(start).ok()?;
        let range = start..start.checked_add(usize::try_from(length).ok()?)?;
        file.get(range.clone())?;
        Some(Section { file: Arc::clone(file), range })
    };
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        debug_frame: data(".debug_frame"),
        stubs_svma: None,
        stub_helper_svma: None,
        unwind_info: None,
        text_segment_svma: None,
        text_segment: None,
    }
}
