//! From a described kernel to one that can be run: found in this process, found on disk, or
//! compiled.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use telltale_program_cache::KernelDescriptor;

use super::compiler::{Compiler, CompilerError};
use super::disk_cache::{CachedKernel, DiskCache, KernelCacheError, Workshop};
use super::includes;
use super::loaded::{LoadKernelError, LoadedKernel};
use super::source::{KernelSourceError, KernelText};
use super::source_files::SourceFiles;
use crate::interrupts::{self, InterruptibleCall};

/// Kernels that are compiled at the same time, each in a thread of its own.
const MAX_COMPILERS: usize = 16;
/// Kernels that one process keeps loaded; beyond this, those that no program uses are dropped.
const MAX_LOADED: usize = 1_024;
/// How often a compiled kernel is obtained that is gone each time before it is loaded.
const MAX_LOAD_ATTEMPTS: usize = 3;

/// Why a kernel cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildKernelError {
    /// Its source cannot be put together.
    #[error(transparent)]
    Source(#[from] KernelSourceError),
    /// It cannot be compiled.
    #[error(transparent)]
    Compiler(#[from] CompilerError),
    /// What was compiled cannot be loaded.
    #[error("it was compiled, but cannot be loaded")]
    Load(#[from] LoadKernelError),
    /// The files of compiled kernels cannot be written.
    #[error("the directory {directory} cannot keep it: see to its permissions and free space")]
    Directory {
        /// The directory of compiled kernels.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Where an accelerator's kernels came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelCounters {
    /// Kernels that were compiled.
    pub compiled: u64,
    /// Kernels that an earlier process, or another accelerator, had compiled to disk.
    pub found_on_disk: u64,
    /// Kernels that were loaded already.
    pub found_loaded: u64,
    /// Kernels that could not be built.
    pub failed: u64,
}

/// Builds kernels for one accelerator.
#[derive(Debug)]
pub(crate) struct KernelBuilder {
    root: PathBuf,
    disk: DiskCache,
    compiled: AtomicU64,
    found_on_disk: AtomicU64,
    found_loaded: AtomicU64,
    failed: AtomicU64,
}

/// A kernel that can be run.
#[derive(Debug)]
pub(crate) struct BuiltKernel {
    pub(crate) code: Arc<LoadedKernel>,
    /// What it was made from, apart from the system's headers.
    pub(crate) files: SourceFiles,
}

/// All kernels of this process, whatever accelerator asked for them.
type Loaded = HashMap<(KernelText, [u64; 2]), Arc<LoadedKernel>>;

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

impl KernelBuilder {
    pub(crate) fn new(root: PathBuf, cache: Option<&Path>) -> Result<Self, KernelCacheError> {
        let disk = DiskCache::open(cache)?;
        Ok(Self {
            root,
            disk,
            compiled: AtomicU64::new(0),
            found_on_disk: AtomicU64::new(0),
            found_loaded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        })
    }

    /// The directory of compiled kernels.
    pub(crate) fn directory(&self) -> &Path {
        self.disk.directory()
    }

    pub(crate) fn counters(&self) -> KernelCounters {
        KernelCounters {
            compiled: self.compiled.load(Ordering::Relaxed),
            found_on_disk: self.found_on_disk.load(Ordering::Relaxed),
            found_loaded: self.found_loaded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// The kernels, in their order; those that must be compiled are compiled [`MAX_COMPILERS`] at a time.
    pub(crate) fn build_all(
        &self,
        kernels: &[KernelDescriptor],
    ) -> Vec<Result<BuiltKernel, BuildKernelError>> {
        let compiler = match Compiler::current() {
            Ok(compiler) => compiler,
            Err(error) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                return vec![Err(error.into())];
            }
        };
        let groups = kernels.chunks(MAX_COMPILERS);
        groups.flat_map(|group| self.build_group(&compiler, group)).collect()
    }

    fn build_group(
        &self,
        compiler: &Compiler,
        kernels: &[KernelDescriptor],
    ) -> Vec<Result<BuiltKernel, BuildKernelError>> {
        let (caller, call) = (&std::thread::current(), &InterruptibleCall::default());
        let done = &AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let builds: Vec<Result<_, BuildKernelError>> = kernels
                .iter()
                .map(|kernel| {
                    let (text, files) = KernelText::of(kernel, &self.root)?;
                    if let Some(code) = find(&text, compiler.identity()) {
                        self.found_loaded.fetch_add(1, Ordering::Relaxed);
                        return Ok(Ok(BuiltKernel { code, files }));
                    }
                    Ok(Err(scope.spawn(move || {
                        call.begin_work();
                        let built = self.build(compiler, text, files);
                        done.fetch_add(1, Ordering::Relaxed);
                        caller.unpark();
                        built
                    })))
                })
                .collect();
            let is_running = |build: &Result<Result<_, ScopedJoinHandle<'_, _>>, _>| match build {
                Ok(Err(thread)) => !thread.is_finished(),
                _ => false,
            };
            // A thread is counted before it wakes this one, and ends after that.
            let spawned = builds.iter().filter(|build| matches!(build, Ok(Err(_)))).count();
            while interrupts::are_possible()
                && done.load(Ordering::Relaxed) < spawned
                && builds.iter().any(is_running)
            {
                std::thread::park_timeout(interrupts::PERIOD);
                call.check();
            }
            builds
                .into_iter()
                .map(|build| match build {
                    Ok(Ok(found)) => Ok(found),
                    Ok(Err(thread)) => thread.join().expect("building a kernel does not panic"),
                    Err(error) => Err(error),
                })
                .inspect(|built| {
                    self.failed.fetch_add(built.is_err().into(), Ordering::Relaxed);
                })
                .collect()
        })
    }

    fn build(
        &self,
        compiler: &Compiler,
        text: KernelText,
        mut files: SourceFiles,
    ) -> Result<BuiltKernel, BuildKernelError> {
        let mut text = Arc::new(text);
        if text.may_include() || compiler.adds_files() {
            if !text.may_include() {
                // Where the compiler is started otherwise: its options may name files by paths from there.
                let here = std::env::current_dir().unwrap_or_else(|_| self.root.clone());
                text = Arc::new(text.in_directory(here));
            }
            let expanded = includes::expand(compiler, &text)?;
            files.add_all(&expanded.files);
            text = expanded.text;
            if expanded.reads_in_assembly {
                return self.build_once(compiler, &text, files);
            }
            if let Some(code) = find(&text, compiler.identity()) {
                self.found_loaded.fetch_add(1, Ordering::Relaxed);
                return Ok(BuiltKernel { code, files });
            }
        }
        let key = text.key(compiler.identity());
        let (kernel, fresh) = load(|| {
            let unusable = |source| self.unusable(source);
            self.disk.obtain(&key, unusable, |workshop| self.compile(compiler, &text, workshop))
        })?;
        let counter = if fresh { &self.compiled } else { &self.found_on_disk };
        counter.fetch_add(1, Ordering::Relaxed);
        let text = Arc::unwrap_or_clone(text);
        Ok(BuiltKernel { code: keep(text, compiler.identity(), Arc::new(kernel)), files })
    }

    /// Compiles a kernel that is not kept, because its text does not say all of what is compiled.
    fn build_once(
        &self,
        compiler: &Compiler,
        text: &KernelText,
        files: SourceFiles,
    ) -> Result<BuiltKernel, BuildKernelError> {
        let unusable = |source| self.unusable(source);
        let code = self.disk.make_once(
            unusable,
            |workshop| self.compile(compiler, text, workshop),
            |library, size| Ok(LoadedKernel::open(library, size)?),
        )?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Ok(BuiltKernel { code: Arc::new(code), files })
    }

    fn compile(
        &self,
        compiler: &Compiler,
        text: &KernelText,
        workshop: &mut Workshop,
    ) -> Result<(), BuildKernelError> {
        let source = workshop.source.try_clone().map_err(|source| self.unusable(source))?;
        let log = workshop.log.try_clone().map_err(|source| self.unusable(source))?;
        match compiler.compile(text, source, log, &workshop.library) {
            // Those are all in the directory.
            Err(CompilerError::Files(source)) => Err(self.unusable(source)),
            outcome => Ok(outcome?),
        }
    }

    fn unusable(&self, source: io::Error) -> BuildKernelError {
        BuildKernelError::Directory { directory: self.directory().to_path_buf(), source }
    }
}

/// Loads what is obtained, and says whether it was made just now. Another process may remove an entry before it
/// is loaded, as one of the oldest of too many; then it is obtained again.
fn load(
    mut obtain: impl FnMut() -> Result<CachedKernel, BuildKernelError>,
) -> Result<(LoadedKernel, bool), BuildKernelError> {
    let mut attempts_left = MAX_LOAD_ATTEMPTS;
    loop {
        let entry = obtain()?;
        attempts_left -= 1;
        match LoadedKernel::open(&entry.path, entry.code) {
            Ok(kernel) => return Ok((kernel, entry.fresh)),
            Err(_) if attempts_left > 0 && !entry.path.exists() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A loaded kernel that may include something is not found: what it includes may be another text
/// by now, which [`includes::expand`] knows.
fn find(text: &KernelText, identity: [u64; 2]) -> Option<Arc<LoadedKernel>> {
    let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.as_ref()?.get(&(text.clone(), identity)).cloned()
}

/// Keeps a kernel for the process; another thread's, if it was quicker.
fn keep(text: KernelText, identity: [u64; 2], kernel: Arc<LoadedKernel>) -> Arc<LoadedKernel> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    if loaded.len() >= MAX_LOADED {
        loaded.retain(|_, kernel| Arc::strong_count(kernel) > 1);
    }
    Arc::clone(loaded.entry((text, identity)).or_insert(kernel))
}

#[cfg(test)]
mod tests {
    use telltale_harness::Scratch;
    use telltale_program_cache::{ComputeConfig, CoreCoord, KernelConfig, KernelSource};

    use super::*;

    #[test]
    fn a_kernel_that_is_removed_before_it_is_loaded_is_compiled_again() {
        let place = Scratch::new();
        let builder = KernelBuilder::new(place.path().to_owned(), Some(place.path())).unwrap();
        let compiler = Compiler::current().unwrap();
        let source = KernelSource::Text("KERNEL_MAIN {}".into());
        let config = KernelConfig::Compute(ComputeConfig::default());
        let kernel = KernelDescriptor::new("once", source, CoreCoord::new(0, 0), config);
        let (text, _) = KernelText::of(&kernel, &builder.root).unwrap();
        let build = |removed: usize| {
            let mut removals = 0;
            load(|| {
                let key = text.key(compiler.identity());
                let unusable = |source| builder.unusable(source);
                let compile = |workshop: &mut Workshop| builder.compile(&compiler, &text, workshop);
                let entry = builder.disk.obtain(&key, unusable, compile)?;
                if removals < removed {
                    std::fs::remove_file(&entry.path).unwrap();
                    removals += 1;
                }
                Ok(entry)
            })
        };
        assert!(build(1).unwrap().1, "it was compiled");
        assert!(!build(0).unwrap().1, "it is there");
        let error = build(MAX_LOAD_ATTEMPTS).unwrap_err();
        assert!(matches!(error, BuildKernelError::Load(_)), "{error}");
    }
}
