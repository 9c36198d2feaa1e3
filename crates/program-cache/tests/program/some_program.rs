//! Random programs, and the one form of those that say the same.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use telltale_program_cache::descriptor::kernel::{
    DataProcessor, MathFidelity, Network, NetworkMode, UnpackMode,
};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRange,
    CoreRanges, CoreType, DataFormat, DataMovementConfig, KernelConfig, KernelDescriptor,
    KernelSource, OptimisationLevel, Placement, ProgramDescriptor, ReaderConfig, RuntimeArguments,
    SemaphoreDescriptor, Text, Tile, WriterConfig,
};

/// Texts that begin alike and end at different places, around the lengths at which the encoder
/// changes how it copies and compares.
fn text() -> impl Strategy<Value = Text> {
    let known = select(vec![
        "",
        "A",
        "AB",
        "B",
        "é",
        "EIGHT_CH",
        "EIGHT_CHA",
        "EIGHT_CHARACTER!",
        "EIGHT_CHARACTERS!",
    ])
    .prop_map(Text::Borrowed);
    prop_oneof![known, "[A-C]{0,20}".prop_map(Text::Owned)]
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..4, any::<u32>()]
}

fn core_range() -> impl Strategy<Value = CoreRange> {
    let corner = || (0u16..5, 0u16..5).prop_map(|(x, y)| CoreCoord::new(x, y));
    (corner(), corner()).prop_map(|(one, two)| CoreRange::new(one, two))
}

fn core_ranges() -> impl Strategy<Value = CoreRanges> {
    vec(core_range(), 0..4).prop_map(CoreRanges::new)
}

fn runtime_arguments() -> impl Strategy<Value = RuntimeArguments> {
    vec((core_range(), vec(number(), 0..3)), 0..4).prop_map(|given| {
        let mut arguments = RuntimeArguments::new();
        for (cores, words) in given {
            cores.cores().for_each(|core| arguments.push(core, &words));
        }
        arguments
    })
}

fn config() -> impl Strategy<Value = KernelConfig> {
    let mover = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(one, two, three)| {
        KernelConfig::DataMovement(DataMovementConfig {
            processor: if one { DataProcessor::First } else { DataProcessor::Second },
            network: if two { Network::First } else { Network::Second },
            network_mode: if three { NetworkMode::Dedicated } else { NetworkMode::Dynamic },
        })
    });
    let fidelity =
        [MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi3, MathFidelity::HiFi4];
    let modes = vec(select(vec![UnpackMode::Default, UnpackMode::ToDestinationFp32]), 0..3);
    let compute = (select(fidelity.to_vec()), modes, any::<[bool; 4]>()).prop_map(
        |(math_fidelity, unpack_modes, flags)| {
            KernelConfig::Compute(ComputeConfig {
                math_fidelity,
                fp32_accumulate: flags[0],
                full_destination_sync: flags[1],
                unpack_modes,
                precise_block_pack: flags[2],
                approximate_math: flags[3],
            })
        },
    );
    prop_oneof![
        Just(KernelConfig::Reader(ReaderConfig {})),
        Just(KernelConfig::Writer(WriterConfig {})),
        mover,
        compute,
    ]
}

fn optimisation_level() -> impl Strategy<Value = Option<OptimisationLevel>> {
    use OptimisationLevel::{O0, O1, O2, O3, Os};
    select(vec![None, Some(O0), Some(O1), Some(O2), Some(O3), Some(Os)])
}

fn kernel() -> impl Strategy<Value = KernelDescriptor> {
    let source =
        prop_oneof![text().prop_map(KernelSource::Path), text().prop_map(KernelSource::Text)];
    let compiled =
        (vec(number(), 0..4), vec((text(), number()), 0..4), vec((text(), text()), 0..4));
    let dispatched = (runtime_arguments(), vec(number(), 0..3));
    (text(), source, core_ranges(), compiled, dispatched, optimisation_level(), config()).prop_map(
        |(name, source, core_ranges, compiled, dispatched, optimisation_level, config)| {
            KernelDescriptor {
                name,
                source,
                core_ranges,
                compile_time_arguments: compiled.0,
                named_compile_time_arguments: compiled.1,
                defines: compiled.2,
                runtime_arguments: dispatched.0,
                common_runtime_arguments: dispatched.1,
                optimisation_level,
                config,
            }
        },
    )
}

fn tile() -> impl Strategy<Value = Option<Tile>> {
    let some = (0u16..3, 0u16..3, any::<bool>())
        .prop_map(|(height, width, transposed)| Some(Tile { height, width, transposed }));
    prop_oneof![Just(None), some]
}

fn format() -> impl Strategy<Value = CircularBufferFormat> {
    (0u8..4, select(DataFormat::ALL.to_vec()), number(), tile()).prop_map(
        |(buffer_index, data_format, page_bytes, tile)| CircularBufferFormat {
            buffer_index,
            data_format,
            page_bytes,
            tile,
        },
    )
}

fn circular_buffer() -> impl Strategy<Value = CircularBufferDescriptor> {
    let placement = prop_oneof![
        Just(Placement::Own),
        number().prop_map(|address| Placement::OnBuffer { address }),
        number().prop_map(|global_circular_buffer| Placement::Remote { global_circular_buffer }),
    ];
    let formats = || vec(format(), 0..4);
    (number(), core_ranges(), formats(), formats(), placement, number()).prop_map(
        |(total_bytes, core_ranges, formats, remote_formats, placement, address_offset_bytes)| {
            CircularBufferDescriptor {
                total_bytes,
                core_ranges,
                formats: formats.into(),
                remote_formats: remote_formats.into(),
                placement,
                address_offset_bytes,
            }
        },
    )
}

fn semaphore() -> impl Strategy<Value = SemaphoreDescriptor> {
    let core_type = select(vec![CoreType::Worker, CoreType::Ethernet]);
    (number(), core_type, core_ranges(), number()).prop_map(
        |(id, core_type, core_ranges, initial_value)| SemaphoreDescriptor {
            id,
            core_type,
            core_ranges,
            initial_value,
        },
    )
}

/// Programs of all shapes, most of which no device could run.
pub(crate) fn program() -> impl Strategy<Value = ProgramDescriptor> {
    (vec(kernel(), 0..4), vec(circular_buffer(), 0..4), vec(semaphore(), 0..4)).prop_map(
        |(kernels, circular_buffers, semaphores)| ProgramDescriptor {
            kernels: kernels.into(),
            circular_buffers: circular_buffers.into(),
            semaphores: semaphores.into(),
        },
    )
}

/// The program with every list whose order does not matter in one order.
pub(crate) fn in_order(mut program: ProgramDescriptor) -> ProgramDescriptor {
    for kernel in &mut program.kernels {
        kernel.named_compile_time_arguments.sort_by(|one, two| one.0.cmp(&two.0));
        kernel.defines.sort_by(|one, two| one.0.cmp(&two.0));
    }
    for buffer in &mut program.circular_buffers {
        buffer.formats.sort_by_key(|format| format.buffer_index);
        buffer.remote_formats.sort_by_key(|format| format.buffer_index);
    }
    program.semaphores.sort_by_key(|semaphore| {
        let first = semaphore.core_ranges.cores().next();
        (semaphore.id, semaphore.core_type, first)
    });
    program
}

/// What a program is without the words of one dispatch.
pub(crate) fn structure(program: ProgramDescriptor) -> ProgramDescriptor<()> {
    in_order(program).map(|_| ())
}
