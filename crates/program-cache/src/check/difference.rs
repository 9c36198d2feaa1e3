//! The first field in which two descriptions differ. Each struct is taken apart without `..`, so a
//! new field does not compile before it has a rule here.

use std::fmt::{self, Debug};

use crate::argument::Argument;
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::circular_buffer::{CircularBufferDescriptor, CircularBufferFormat};
use crate::descriptor::kernel::KernelDescriptor;
use crate::descriptor::semaphore::SemaphoreDescriptor;

/// A field that differs between a program that was found and what was described again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which: kernel, core, argument.
    pub field: String,
    /// What the program has that was found.
    pub found: String,
    /// What the new description has.
    pub rebuilt: String,
}

impl Difference {
    pub(crate) fn new(
        field: impl Into<String>,
        found: &(impl Debug + ?Sized),
        rebuilt: &(impl Debug + ?Sized),
    ) -> Self {
        let (found, rebuilt) = (format!("{found:?}"), format!("{rebuilt:?}"));
        Self { field: field.into(), found, rebuilt }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, found, rebuilt } = self;
        write!(formatter, "{field}: the program has {found}, the new description {rebuilt}")
    }
}

type Found = Result<(), Difference>;

/// The first difference; `None` if there is none.
pub(super) fn first(
    found: &ProgramDescriptor<Argument>,
    rebuilt: &ProgramDescriptor<Argument>,
) -> Option<Difference> {
    program(found, rebuilt).err()
}

fn program(found: &ProgramDescriptor<Argument>, rebuilt: &ProgramDescriptor<Argument>) -> Found {
    let ProgramDescriptor { kernels, circular_buffers, semaphores } = found;
    same("number of kernels", &kernels.len(), &rebuilt.kernels.len())?;
    for (index, (found, rebuilt)) in kernels.iter().zip(&rebuilt.kernels).enumerate() {
        kernel(&format!("kernel {index} `{}`", rebuilt.name), found, rebuilt)?;
    }
    let counts = (circular_buffers.len(), rebuilt.circular_buffers.len());
    same("number of circular buffers", &counts.0, &counts.1)?;
    for (index, (found, rebuilt)) in
        circular_buffers.iter().zip(&rebuilt.circular_buffers).enumerate()
    {
        circular_buffer(&format!("circular buffer {index}"), found, rebuilt)?;
    }
    let order = |one: &SemaphoreDescriptor| format!("{one:?}");
    each("semaphore", sorted(semaphores, order), sorted(&rebuilt.semaphores, order))
}

fn kernel(
    at: &str,
    found: &KernelDescriptor<Argument>,
    rebuilt: &KernelDescriptor<Argument>,
) -> Found {
    let KernelDescriptor {
        name,
        source,
        core_ranges,
        compile_time_arguments,
        named_compile_time_arguments,
        defines,
        runtime_arguments,
        common_runtime_arguments,
        optimisation_level,
        config,
    } = found;
    let field = |name: &str| format!("{at}, {name}");
    same(&field("name"), name, &rebuilt.name)?;
    same(&field("source"), source, &rebuilt.source)?;
    same(&field("core ranges"), core_ranges, &rebuilt.core_ranges)?;
    each(
        &field("compile-time argument"),
        compile_time_arguments.iter().collect(),
        rebuilt.compile_time_arguments.iter().collect(),
    )?;
    each(
        &field("named compile-time argument"),
        sorted(named_compile_time_arguments, |(name, _)| name.clone()),
        sorted(&rebuilt.named_compile_time_arguments, |(name, _)| name.clone()),
    )?;
    each(
        &field("define"),
        sorted(defines, |(name, _)| name.clone()),
        sorted(&rebuilt.defines, |(name, _)| name.clone()),
    )?;
    same(&field("optimisation level"), optimisation_level, &rebuilt.optimisation_level)?;
    same(&field("configuration"), config, &rebuilt.config)?;
    let placement = (runtime_arguments.runs(), rebuilt.runtime_arguments.runs());
    same(&field("cores with runtime arguments"), placement.0, placement.1)?;
    let cores = runtime_arguments.cores().zip(rebuilt.runtime_arguments.cores());
    for ((core, found), (_, rebuilt)) in cores {
        let argument = field(&format!("core {core}, argument"));
        each(&argument, found.iter().collect(), rebuilt.iter().collect())?;
    }
    each(
        &field("common argument"),
        common_runtime_arguments.iter().collect(),
        rebuilt.common_runtime_arguments.iter().collect(),
    )
}

fn circular_buffer(
    at: &str,
    found: &CircularBufferDescriptor<Argument>,
    rebuilt: &CircularBufferDescriptor<Argument>,
) -> Found {
    let CircularBufferDescriptor {
        total_bytes,
        core_ranges,
        formats,
        remote_formats,
        placement,
        address_offset_bytes,
    } = found;
    let field = |name: &str| format!("{at}, {name}");
    same(&field("total bytes"), total_bytes, &rebuilt.total_bytes)?;
    same(&field("core ranges"), core_ranges, &rebuilt.core_ranges)?;
    let order = |format: &CircularBufferFormat| *format;
    let here = (sorted(formats, order), sorted(&rebuilt.formats, order));
    each(&field("format"), here.0, here.1)?;
    let remote = (sorted(remote_formats, order), sorted(&rebuilt.remote_formats, order));
    each(&field("remote format"), remote.0, remote.1)?;
    same(&field("placement"), placement, &rebuilt.placement)?;
    same(&field("address offset"), address_offset_bytes, &rebuilt.address_offset_bytes)
}

fn same<T: PartialEq + Debug + ?Sized>(field: &str, found: &T, rebuilt: &T) -> Found {
    match found == rebuilt {
        true => Ok(()),
        false => Err(Difference::new(field, found, rebuilt)),
    }
}

/// Compares item by item, and names the first that differs or is missing on one side.
fn each<T: PartialEq + Debug>(field: &str, found: Vec<&T>, rebuilt: Vec<&T>) -> Found {
    for index in 0..found.len().max(rebuilt.len()) {
        let text = |item: Option<&&T>| item.map_or("nothing".to_owned(), |one| format!("{one:?}"));
        let (one, other) = (found.get(index), rebuilt.get(index));
        if one != other {
            let field = format!("{field} {index}");
            return Err(Difference { field, found: text(one), rebuilt: text(other) });
        }
    }
    Ok(())
}

/// The items of what has no order, in one that depends on them alone.
fn sorted<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Vec<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by_key(|item| key(item));
    sorted
}
