//! What kernels of an accelerator in this process print, as a client of the C interface reads it.
//! A program of its own, because the logical cores are the process's.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_harness::Scratch;
use telltale_nrt::{
    EventHeader, Status, TensorPayload, nrt_debug_client_connect, nrt_debug_client_connect_close,
    nrt_debug_client_read_one_event, nrt_get_visible_nc_count,
};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRange,
    CoreRanges, DataFormat, KernelConfig, KernelDescriptor, KernelSource, ProgramDescriptor,
};
use telltale_runtime::{Options, Runtime};

/// Prints its core's place, a text, which is no tensor, and a row of a tile of such numbers.
const PRINT: &str = r#"
KERNEL_MAIN {
  cb_reserve_back(0, 1);
  float *numbers = get_write_ptr(0);
  for (int i = 0; i < TILE_NUMBERS; i++) numbers[i] = (float)(100 * core_x() + core_y());
  cb_push_back(0, 1);
  device_print_scalar("place", 100 * core_x() + core_y());
  device_print_text("text", "which the published interface does not have");
  device_print_tile("tile", 0, float32, .rows = 1, .columns = 3);
  cb_pop_front(0, 1);
}"#;

/// Takes an event; none if there is no more.
fn read(stream: c_int) -> Option<(TensorPayload, Vec<u8>)> {
    let mut header = EventHeader { data_size: 0, event_type: 0, reserved: [0; 52] };
    let mut payload: *mut c_void = ptr::null_mut();
    // SAFETY: both are places for what the call writes.
    let status = unsafe { nrt_debug_client_read_one_event(stream, &mut header, &mut payload) };
    if status == Status::QUEUE_EMPTY {
        return None;
    }
    assert_eq!((status, header.event_type), (Status::SUCCESS, 1));
    let start = payload.cast::<TensorPayload>();
    // SAFETY: a successful call gives a payload of `data_size` bytes: the structure, then the
    // tensor. It is the caller's to free, and is copied before that.
    unsafe {
        let fixed = *start;
        let bytes = usize::try_from(fixed.tensor_data_size).unwrap();
        let data = std::slice::from_raw_parts(start.add(1).cast::<u8>(), bytes).to_vec();
        libc::free(payload);
        Some((fixed, data))
    }
}

fn text(bytes: &[u8]) -> &str {
    CStr::from_bytes_until_nul(bytes).unwrap().to_str().unwrap()
}

fn program(grid: (u16, u16)) -> ProgramDescriptor {
    let last = CoreCoord::new(grid.0 - 1, grid.1 - 1);
    let cores: CoreRanges = CoreRange::new(CoreCoord::new(0, 0), last).into();
    let format = CircularBufferFormat {
        buffer_index: 0,
        data_format: DataFormat::Float32,
        page_bytes: 4_096,
        tile: None,
    };
    let source = KernelSource::Text(PRINT.into());
    let config = KernelConfig::Compute(ComputeConfig::default());
    ProgramDescriptor {
        kernels: [KernelDescriptor::new("print", source, cores.clone(), config)]
            .into_iter()
            .collect(),
        circular_buffers: [CircularBufferDescriptor::own(cores, 1, format)].into_iter().collect(),
        ..ProgramDescriptor::default()
    }
}

#[test]
fn a_client_in_c_reads_what_each_core_of_the_grid_printed() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let _emulator = Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
    let runtime = Runtime::start(Options { root: Some(root.clone()), ..Options::new("a test") });
    let options = AcceleratorOptions {
        root: Some(root),
        kernel_cache: Some(scratch.join("kernels")),
        ..AcceleratorOptions::default()
    };
    let accelerator = Accelerator::open(&options, &runtime).unwrap();
    let (columns, rows) = accelerator.grid();
    let mut count = 0;
    // SAFETY: a place for a number.
    assert_eq!(unsafe { nrt_get_visible_nc_count(&mut count) }, Status::SUCCESS);
    assert_eq!(count, u32::from(columns) * u32::from(rows));
    let streams: Vec<c_int> = (0..c_int::try_from(count).unwrap())
        .map(|core| {
            let mut stream = -1;
            // SAFETY: a place for a number.
            assert_eq!(unsafe { nrt_debug_client_connect(core, &mut stream) }, Status::SUCCESS);
            stream
        })
        .collect();
    let program = accelerator.compile(&program((columns, rows))).unwrap();
    accelerator.enqueue(&program, &[]).unwrap();
    accelerator.finish().unwrap();
    for (x, y) in (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))) {
        let core = accelerator.logical_core(CoreCoord::new(x, y)).unwrap();
        let stream = streams[usize::try_from(core).unwrap()];
        let place = 100 * u32::from(x) + u32::from(y);
        let numbers = (place as f32).to_le_bytes().repeat(3);
        let expected = [
            ("place", "uint32", [0, 0], place.to_le_bytes().to_vec()),
            ("tile", "float32", [1, 3], numbers),
        ];
        for (prefix, dtype, shape, data) in expected {
            let (found, bytes) = read(stream).unwrap();
            assert_eq!((text(&found.prefix), text(&found.tensor_dtype)), (prefix, dtype));
            assert_eq!((found.logical_nc_id, found.pipe), (core, 0));
            assert_eq!((&found.tensor_shape[..2], bytes), (&shape[..], data));
        }
        assert!(read(stream).is_none(), "texts are no tensors");
    }
    for stream in streams {
        nrt_debug_client_connect_close(stream);
    }
}
