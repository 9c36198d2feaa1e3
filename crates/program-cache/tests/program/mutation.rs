//! Each field of each public struct of a description, changed alone: either the key differs, or the
//! key is the same and the program's words are those of the changed description. A field without
//! a line here does not compile.

use telltale_program_cache::descriptor::kernel::{
    DataProcessor, MathFidelity, Network, NetworkMode, UnpackMode,
};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRanges, CoreType,
    DataFormat, DataMovementConfig, KernelConfig, KernelDescriptor, KernelSource, KeyEncoder,
    OptimisationLevel, Placement, ProgramArguments, ProgramDescriptor, ReaderConfig,
    RuntimeArguments, SemaphoreDescriptor, Tile, WriterConfig,
};

use crate::program::example::{program, range};
use crate::program::table::{Mutation, Rule, table};

fn programs() -> Vec<Mutation<ProgramDescriptor>> {
    table!(ProgramDescriptor {
        kernels: [
            Keyed | kernels | {
                kernels.pop();
            },
            Keyed | kernels | kernels.swap(0, 2),
            Keyed | kernels | kernels.push(kernels[0].clone()),
        ],
        circular_buffers: [
            Keyed | buffers | {
                buffers.pop();
            },
            Keyed | buffers | buffers.swap(0, 1),
        ],
        semaphores: [
            Keyed | semaphores | {
                semaphores.pop();
            },
            Keyed | semaphores | semaphores.push(semaphores[0].clone()),
        ],
    })
}

fn kernels() -> Vec<Mutation<KernelDescriptor>> {
    table!(KernelDescriptor {
        name: [Keyed | name | name.to_mut().push('_')],
        source: [
            Keyed | source | *source = KernelSource::Path("kernels/other.c".into()),
            Keyed | source | *source = KernelSource::Text("kernels/other.c".into()),
        ],
        core_ranges: [
            Keyed | cores | *cores = CoreRanges::none(),
            Keyed | cores | *cores =
                cores.ranges().iter().copied().chain([range(9, 9, 9, 9)]).collect(),
        ],
        compile_time_arguments: [
            Keyed | words | words[1] += 1,
            Keyed | words | words.swap(0, 1),
            Keyed | words | words.push(0),
            Keyed | words | {
                words.pop();
            },
        ],
        named_compile_time_arguments: [
            Keyed | named | named[0].1 += 1,
            Keyed | named | named[0].0.to_mut().push('_'),
            Keyed | named | named.push(("more".into(), 0)),
            Keyed | named | {
                named.pop();
            },
        ],
        defines: [
            Keyed | defines | defines[0].0.to_mut().push('_'),
            Keyed | defines | defines[0].1.to_mut().push('_'),
            Keyed | defines | defines.push(("MORE".into(), "".into())),
            Keyed | defines | {
                defines.pop();
            },
        ],
        runtime_arguments: [
            Value | arguments | arguments.words_mut()[5] += 1,
            Value | arguments | arguments.words_mut().iter_mut().for_each(|word| *word ^= u32::MAX),
            Keyed | arguments | arguments.push(CoreCoord::new(9, 9), &[]),
            Keyed | arguments | arguments.push(CoreCoord::new(9, 9), &[1]),
            Keyed | arguments | all_to_one_core(arguments),
            Keyed | arguments | exchange_first_cores(arguments),
        ],
        common_runtime_arguments: [
            Value | words | words[0] += 1,
            Value | words | words.swap(0, 1),
            Keyed | words | words.push(0),
            Keyed | words | {
                words.pop();
            },
        ],
        optimisation_level: [
            Keyed | level | *level = None,
            Keyed | level | *level = Some(OptimisationLevel::O0),
            Keyed | level | *level = Some(OptimisationLevel::O1),
            Keyed | level | *level = Some(OptimisationLevel::O3),
            Keyed | level | *level = Some(OptimisationLevel::Os),
        ],
        config: [Keyed | config | *config = match config {
            KernelConfig::Reader(_) => KernelConfig::Writer(WriterConfig {}),
            _ => KernelConfig::Reader(ReaderConfig {}),
        },],
    })
}

/// The same words in the same number and order, given to one core.
fn all_to_one_core(arguments: &mut RuntimeArguments) {
    let mut gathered = RuntimeArguments::new();
    gathered.push(CoreCoord::new(0, 0), arguments.words());
    *arguments = gathered;
}

/// The same words for the same cores, given in another order.
fn exchange_first_cores(arguments: &mut RuntimeArguments) {
    let mut cores: Vec<_> = arguments.cores().collect();
    cores.swap(0, 1);
    let mut exchanged = RuntimeArguments::new();
    cores.iter().for_each(|(core, words)| exchanged.push(*core, words));
    *arguments = exchanged;
}

fn readers() -> Vec<Mutation<ReaderConfig>> {
    table!(ReaderConfig {})
}

fn writers() -> Vec<Mutation<WriterConfig>> {
    table!(WriterConfig {})
}

fn movers() -> Vec<Mutation<DataMovementConfig>> {
    table!(DataMovementConfig {
        processor: [Keyed | processor | *processor = DataProcessor::First],
        network: [Keyed | network | *network = Network::Second],
        network_mode: [Keyed | mode | *mode = NetworkMode::Dynamic],
    })
}

fn compute() -> Vec<Mutation<ComputeConfig>> {
    table!(ComputeConfig {
        math_fidelity: [
            Keyed | fidelity | *fidelity = MathFidelity::LoFi,
            Keyed | fidelity | *fidelity = MathFidelity::HiFi3,
            Keyed | fidelity | *fidelity = MathFidelity::HiFi4,
        ],
        fp32_accumulate: [Keyed | flag | *flag = !*flag],
        full_destination_sync: [Keyed | flag | *flag = !*flag],
        unpack_modes: [
            Keyed | modes | modes.swap(0, 1),
            Keyed | modes | modes.push(UnpackMode::Default),
            Keyed | modes | modes.clear(),
        ],
        precise_block_pack: [Keyed | flag | *flag = !*flag],
        approximate_math: [Keyed | flag | *flag = !*flag],
    })
}

fn circular_buffers() -> Vec<Mutation<CircularBufferDescriptor>> {
    table!(CircularBufferDescriptor {
        total_bytes: [Keyed | bytes | *bytes *= 2],
        core_ranges: [Keyed | cores | *cores = range(9, 9, 9, 9).into()],
        formats: [
            Keyed | formats | formats.clear(),
            Keyed | formats | formats.push(crate::program::example::format(30)),
        ],
        remote_formats: [Keyed | formats | formats.push(crate::program::example::format(30))],
        placement: [
            Value | placement | *placement = placement.map(|address| address + 32),
            Keyed | placement | *placement = match placement {
                Placement::Own => Placement::OnBuffer { address: 0 },
                Placement::OnBuffer { address } =>
                    Placement::Remote { global_circular_buffer: *address },
                Placement::Remote { .. } => Placement::Own,
            },
            Keyed | placement | *placement = match placement {
                Placement::Own => Placement::Remote { global_circular_buffer: 0 },
                Placement::OnBuffer { .. } => Placement::Own,
                Placement::Remote { global_circular_buffer } =>
                    Placement::OnBuffer { address: *global_circular_buffer },
            },
        ],
        address_offset_bytes: [Keyed | offset | *offset += 32],
    })
}

fn formats() -> Vec<Mutation<CircularBufferFormat>> {
    table!(CircularBufferFormat {
        buffer_index: [Keyed | index | *index += 8],
        data_format: [
            Keyed | format | *format = DataFormat::Float32,
            Keyed | format | *format = DataFormat::UInt16,
        ],
        page_bytes: [Keyed | bytes | *bytes += 1],
        tile: [Keyed | tile | *tile = None],
    })
}

fn tiles() -> Vec<Mutation<Tile>> {
    table!(Tile {
        height: [Keyed | height | *height = 16],
        width: [Keyed | width | *width = 16],
        transposed: [Keyed | transposed | *transposed = true],
    })
}

fn semaphores() -> Vec<Mutation<SemaphoreDescriptor>> {
    table!(SemaphoreDescriptor {
        id: [Keyed | id | *id += 8],
        core_type: [Keyed | core_type | *core_type = CoreType::Ethernet],
        core_ranges: [Keyed | cores | *cores = range(9, 9, 9, 9).into()],
        initial_value: [Keyed | value | *value += 1],
    })
}

/// What was changed, what that must do, and the changed program.
type Change = (String, Rule, ProgramDescriptor);

/// Every change of one table, made at one place of the example.
fn at<T: 'static>(
    place: &str,
    table: Vec<Mutation<T>>,
    part: impl Fn(&mut ProgramDescriptor) -> Option<&mut T>,
) -> Vec<Change> {
    table
        .into_iter()
        .filter_map(|mutation| {
            let mut changed = program();
            (mutation.change)(part(&mut changed)?);
            Some((format!("{place}: {}", mutation.field), mutation.rule, changed))
        })
        .collect()
}

/// Every change of every field at every place of the example where the field is.
fn all_changes() -> Vec<Change> {
    let example = program();
    let mut changes = at("program", programs(), |program| Some(program));
    for (index, kernel) in example.kernels.iter().enumerate() {
        let place = format!("kernel {index}");
        changes.extend(at(&place, kernels(), |program| program.kernels.get_mut(index)));
        changes.extend(config_changes(&place, index, &kernel.config));
    }
    for (index, buffer) in example.circular_buffers.iter().enumerate() {
        let place = format!("circular buffer {index}");
        changes.extend(buffer_changes(&place, index, buffer));
    }
    for index in 0..example.semaphores.len() {
        changes.extend(at(&format!("semaphore {index}"), semaphores(), |program| {
            program.semaphores.get_mut(index)
        }));
    }
    changes
}

fn config_changes(place: &str, kernel: usize, config: &KernelConfig) -> Vec<Change> {
    macro_rules! changes {
        ($table:expr, $variant:ident) => {
            at(place, $table, |program| match &mut program.kernels[kernel].config {
                KernelConfig::$variant(config) => Some(config),
                _ => None,
            })
        };
    }
    match config {
        KernelConfig::Reader(_) => changes!(readers(), Reader),
        KernelConfig::Writer(_) => changes!(writers(), Writer),
        KernelConfig::DataMovement(_) => changes!(movers(), DataMovement),
        KernelConfig::Compute(_) => changes!(compute(), Compute),
    }
}

fn buffer_changes(place: &str, index: usize, buffer: &CircularBufferDescriptor) -> Vec<Change> {
    // A buffer in the program's own memory has no address to change.
    let own = matches!(buffer.placement, Placement::Own);
    let table = circular_buffers();
    let table = table.into_iter().filter(|one| !(own && one.rule == Rule::Value)).collect();
    let mut changes = at(place, table, |program| program.circular_buffers.get_mut(index));
    for format in 0..buffer.formats.len() {
        changes.extend(at(place, formats(), |program| {
            program.circular_buffers[index].formats.get_mut(format)
        }));
        changes.extend(at(place, tiles(), |program| {
            program.circular_buffers[index].formats[format].tile.as_mut()
        }));
    }
    for format in 0..buffer.remote_formats.len() {
        changes.extend(at(&format!("{place}, far end"), formats(), |program| {
            program.circular_buffers[index].remote_formats.get_mut(format)
        }));
    }
    changes
}

#[test]
fn each_field_is_in_the_key_or_applied() {
    let base = program();
    let mut encoder = KeyEncoder::new();
    let base_key = base.key(&mut encoder).to_owned();
    let changes = all_changes();
    assert!(changes.len() > 150, "only {} changes", changes.len());
    for (field, rule, changed) in &changes {
        assert_ne!(*changed, base, "{field} was not changed");
        let same = base_key == changed.key(&mut encoder);
        assert_eq!(same, *rule == Rule::Value, "{field}: the key stayed: {same}");
        let mut arguments = ProgramArguments::of(&base).unwrap();
        if same {
            arguments.copy_from_descriptor(changed).unwrap();
            assert_eq!(arguments, ProgramArguments::of(changed).unwrap(), "{field}");
            assert_ne!(arguments, ProgramArguments::of(&base).unwrap(), "{field}");
        }
    }
}

#[test]
fn different_changes_have_different_keys() {
    let mut encoder = KeyEncoder::new();
    let keys: Vec<_> = all_changes()
        .into_iter()
        .filter(|(_, rule, _)| *rule == Rule::Keyed)
        .map(|(field, _, changed)| (changed.key(&mut encoder).to_owned(), field, changed))
        .collect();
    for (index, (one, field, changed)) in keys.iter().enumerate() {
        for (two, other, other_changed) in keys.iter().skip(index + 1) {
            assert!(one != two || changed == other_changed, "{field} and {other} have one key");
        }
    }
}
