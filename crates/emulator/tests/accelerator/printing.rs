//! What kernels print, as the reader of their core's stream gets it.

use std::sync::atomic::{AtomicBool, Ordering};

use telltale_debug_stream::{
    Consumer, DEFAULT_MAX_EVENTS, Dtype, Event, EventKind, Losses, NextEvent, Stream,
};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, CoreCoord, CoreRanges, DataFormat,
    KernelDescriptor, KeyEncoder, ProgramDescriptor,
};

use crate::accelerator::bench::{Bench, cores, kernel, tiles};

const ORIGIN: CoreCoord = CoreCoord::new(0, 0);

fn program(kernel: KernelDescriptor, buffers: &[CircularBufferDescriptor]) -> ProgramDescriptor {
    ProgramDescriptor {
        kernels: [kernel].into_iter().collect(),
        circular_buffers: buffers.iter().cloned().collect(),
        ..ProgramDescriptor::default()
    }
}

/// Runs a kernel on one core that has a circular buffer of two tiles, and returns its prints.
fn printed(bench: &Bench, text: &'static str) -> Vec<Event> {
    let stream = bench.accelerator.debug_stream(ORIGIN).unwrap();
    let mut consumer = stream.connect().unwrap();
    let one = cores(1, 1);
    run(bench, &program(kernel("print", text, &one), &[tiles(0, 2, &one)]));
    everything(&mut consumer).0
}

fn run(bench: &Bench, program: &ProgramDescriptor) {
    let program = bench.accelerator.compile(program).unwrap();
    bench.accelerator.enqueue(&program, &[]).unwrap();
    bench.accelerator.finish().unwrap();
}

/// What waits, and what was lost.
fn everything(consumer: &mut Consumer) -> (Vec<Event>, u64) {
    let (mut events, mut lost) = (Vec::new(), 0);
    while let Some(next) = consumer.try_next().unwrap() {
        match next {
            NextEvent::Event(event) => events.push(event),
            NextEvent::Lost(losses) => lost += losses.sum(),
        }
    }
    (events, lost)
}

fn reported(event: &Event) -> (&str, &str, &[u64], &[u8]) {
    (&event.prefix, &event.dtype, &event.shape, &event.data)
}

fn text_of(event: &Event) -> &str {
    assert_eq!(event.kind, EventKind::Text);
    std::str::from_utf8(&event.data).unwrap()
}

#[test]
fn a_kernel_prints_numbers_of_every_type_and_texts() {
    let bench = Bench::new();
    let events = printed(
        &bench,
        r#"
KERNEL_MAIN {
  device_print_scalar("float", 1.5f);
  device_print_scalar("double", 0.1);
  device_print_scalar("int", -3);
  device_print_scalar("unsigned", 7u);
  device_print_scalar("bytes", (uint8_t)255);
  device_print_scalar("long", INT64_MIN);
  device_print_scalar("half", (int16_t)-2);
  device_print_text("where", "half way");
  if (core_x() == 0) device_print_text("é", "caf\xc3\xa9 \xff");
  else device_print_text("never", "");
}"#,
    );
    let expected: [(&str, &str, &[u8]); 7] = [
        ("float", "float32", &1.5_f32.to_le_bytes()),
        ("double", "float32", &0.1_f32.to_le_bytes()),
        ("int", "int32", &(-3_i32).to_le_bytes()),
        ("unsigned", "uint32", &7_u32.to_le_bytes()),
        ("bytes", "uint8", &[255]),
        ("long", "int64", &i64::MIN.to_le_bytes()),
        ("half", "int16", &(-2_i16).to_le_bytes()),
    ];
    for (event, (prefix, dtype, data)) in events.iter().zip(expected) {
        assert_eq!(reported(event), (prefix, dtype, &[][..], data));
        assert_eq!(Some(event.core), bench.accelerator.logical_core(ORIGIN));
    }
    let texts: Vec<_> = events[7..].iter().map(|event| (&*event.prefix, text_of(event))).collect();
    assert_eq!(texts, [("where", "half way"), ("é", "café \u{fffd}")]);
    assert_eq!(bench.accelerator.refused_prints(), 0);
}

#[test]
fn a_circular_buffer_is_printed_whole_or_in_part_by_who_reads_and_who_writes_it() {
    let bench = Bench::new();
    let events = printed(
        &bench,
        r#"
KERNEL_MAIN {
  cb_reserve_back(0, 2);
  float *numbers = get_write_ptr(0);
  for (int i = 0; i < 2 * TILE_NUMBERS; i++) numbers[i] = (float)i;
  device_print_tile("reserved", 0, float32, .rows = 1, .columns = 2, .page = 1, .written = 1);
  cb_push_back(0, 2);
  device_print_tile("whole", 0, float32);
  device_print_tile("part", 0, float32, .row = 1, .column = 3, .rows = 2, .columns = 2);
  device_print_tile("wide", 0, float32, .width = 128, .rows = 10);
  device_print_tile("second", 0, float32, .page = 1, .rows = 1, .columns = 1);
  cb_pop_front(0, 1);
  device_print_tile("popped", 0, float32, .rows = 1, .columns = 1);
}"#,
    );
    let numbers = |numbers: &[u32]| -> Vec<u8> {
        numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect()
    };
    let all = |count: u32| numbers(&(0..count).collect::<Vec<u32>>());
    let expected = [
        ("reserved", [1, 2], numbers(&[1024, 1025])),
        ("whole", [32, 32], all(1_024)),
        ("part", [2, 2], numbers(&[35, 36, 67, 68])),
        ("wide", [10, 128], all(1_280)),
        ("second", [1, 1], numbers(&[1024])),
        ("popped", [1, 1], numbers(&[1024])),
    ];
    assert_eq!(events.len(), expected.len(), "{events:?}");
    for (event, (prefix, shape, data)) in events.iter().zip(&expected) {
        assert_eq!(reported(event), (*prefix, "float32", &shape[..], &data[..]));
    }
    assert_eq!(bench.accelerator.refused_prints(), 0);
}

#[test]
fn a_tile_is_printed_as_any_of_the_data_types() {
    let bench = Bench::new();
    let prints: String = Dtype::ALL
        .iter()
        .map(|dtype| {
            format!("device_print_tile(\"x\", 0, {}, .width = 32, .rows = 2);\n", dtype.name())
        })
        .collect();
    let text = format!(
        "KERNEL_MAIN {{
           cb_reserve_back(0, 1);
           uint8_t *bytes = get_write_ptr(0);
           for (int i = 0; i < 4096; i++) bytes[i] = (uint8_t)(i * 7);
           cb_push_back(0, 1);
           {prints}
         }}"
    );
    let events = printed(&bench, text.leak());
    assert_eq!(events.len(), Dtype::ALL.len());
    for (event, dtype) in events.iter().zip(Dtype::ALL) {
        let bytes: Vec<u8> = (0..64 * dtype.element_bytes()).map(|i| (i * 7) as u8).collect();
        assert_eq!(reported(event), ("x", dtype.name(), &[2, 32][..], &bytes[..]));
    }
}

#[test]
fn what_is_not_there_is_refused_counted_and_reported_and_the_kernel_goes_on() {
    let bench = Bench::new();
    let events = printed(
        &bench,
        r#"
KERNEL_MAIN {
  device_print_tile("nothing pushed", 0, float32);
  cb_reserve_back(0, 1);
  cb_push_back(0, 1);
  device_print_tile("beyond", 0, float32, .rows = 33);
  device_print_tile("other page", 0, float32, .page = 1);
  device_print_tile("far page", 0, float32, .page = 0xffffffff);
  device_print_tile("huge", 0, int64, .width = 0xffffffff, .row = 0xffffffff, .rows = 0xffffffff);
  device_print_tile("sideways", 0, float32, .column = 8, .columns = 25);
  device_print_tile("no buffer", 7, float32);
  device_print_tile("no such buffer", 0xffffffff, float32);
  core->calls->print_scalar(core, "no type", 19, 0);
  char endless[600];
  for (int i = 0; i < 600; i++) endless[i] = 'x';
  core->calls->print_scalar(core, endless, TELLTALE_DTYPE_int8, 1);
  static char long_text[5000];
  for (int i = 0; i < 5000; i++) long_text[i] = 'y';
  core->calls->print_text(core, "long", long_text);
}"#,
    );
    let refused: Vec<_> = events[..9]
        .iter()
        .map(|event| {
            let reason = text_of(event).strip_prefix("not printed: ").unwrap();
            format!("{}: {reason}", event.prefix)
        })
        .collect();
    let no_page = |page: u32| {
        format!("circular buffer 0 has no page {page} that can be read; call cb_wait_front before")
    };
    let expected = [
        format!("nothing pushed: {}", no_page(0)),
        "beyond: it ends 4224 bytes after the start of page 0 of circular buffer 0, which has 4096 bytes \
         from there that can be read"
            .to_owned(),
        format!("other page: {}", no_page(1)),
        format!("far page: {}", no_page(u32::MAX)),
        "huge".to_owned(),
        "sideways: its pages of 4096 bytes are printed as rows of 32 numbers, and the part from row 0, \
         column 8 on has none or leaves its row"
            .to_owned(),
        "no buffer: this core has no circular buffer 7".to_owned(),
        "no such buffer: this core has no circular buffer 4294967295".to_owned(),
        "no type: there is no data type 19".to_owned(),
    ];
    for (found, expected) in refused.iter().zip(&expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    assert_eq!(bench.accelerator.refused_prints(), 9);
    assert_eq!((events[9].prefix.as_str(), &events[9].data[..]), (&*"x".repeat(511), &[1][..]));
    assert_eq!(text_of(&events[10]), "y".repeat(4_096));
    assert_eq!(events.len(), 11);
}

#[test]
fn nothing_is_printed_or_computed_while_nobody_reads_or_the_kernel_has_it_off() {
    let bench = Bench::new();
    let one = cores(1, 1);
    let text = "KERNEL_MAIN { device_print_scalar(\"x\", (kernel_fail(1), 1)); }";
    let stream = bench.accelerator.debug_stream(ORIGIN).unwrap();
    let before = stream.counters();
    let mut on = kernel("print", text, &one);
    run(&bench, &program(on.clone(), &[]));
    let _consumer = stream.connect().unwrap();
    let with = program(on.clone(), &[]);
    for value in ["", "1"] {
        on.defines = [("DEVICE_PRINT_OFF".into(), value.into())].into_iter().collect();
        let without = program(on.clone(), &[]);
        let [with, other] = [&with, &without].map(|one| one.key(&mut KeyEncoder::new()).to_owned());
        assert_ne!(with, other, "a define makes it another program");
        run(&bench, &without);
    }
    assert_eq!(stream.counters().produced, before.produced);
    let compiled = bench.accelerator.compile(&with).unwrap();
    bench.accelerator.enqueue(&compiled, &[]).unwrap();
    bench.accelerator.finish().unwrap_err();
}

/// Prints as often as its argument says; every tenth time a tile.
const MANY: &str = "
KERNEL_MAIN {
  cb_reserve_back(0, 1);
  uint32_t *numbers = get_write_ptr(0);
  for (int i = 0; i < TILE_NUMBERS; i++) numbers[i] = core_x() + 100 * core_y();
  cb_push_back(0, 1);
  for (uint32_t i = 0; i < get_common_arg_val(0); i++) {
    if (i % 10 == 9) device_print_tile(\"tile\", 0, uint32);
    else device_print_scalar(\"count\", i);
  }
  cb_pop_front(0, 1);
}";

fn many(count: u32, cores: &CoreRanges) -> ProgramDescriptor {
    let mut kernel = kernel("many", MANY, cores);
    kernel.common_runtime_arguments.push(count);
    let format = CircularBufferFormat {
        buffer_index: 0,
        data_format: DataFormat::UInt32,
        page_bytes: 4_096,
        tile: None,
    };
    program(kernel, &[CircularBufferDescriptor::own(cores.clone(), 1, format)])
}

#[test]
fn prints_of_all_cores_reach_their_own_streams_while_they_are_read() {
    const PRINTS: u64 = 2_000;
    let bench = Bench::new();
    let all = cores(8, 8);
    let streams: Vec<&Stream> = bench.accelerator.debug_streams().collect();
    let before: Vec<_> = streams.iter().map(|stream| stream.counters()).collect();
    let mut consumers: Vec<_> = streams.iter().map(|stream| stream.connect().unwrap()).collect();
    let done = AtomicBool::new(false);
    let got = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = vec![(Vec::new(), 0); consumers.len()];
            loop {
                let last = done.load(Ordering::Acquire);
                for (consumer, got) in consumers.iter_mut().zip(&mut got) {
                    let (events, lost) = everything(consumer);
                    got.0.extend(events);
                    got.1 += lost;
                }
                if last {
                    return got;
                }
            }
        });
        run(&bench, &many(PRINTS as u32, &all));
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    for (place, (((events, lost), stream), before)) in
        got.iter().zip(&streams).zip(&before).enumerate()
    {
        let (x, y) = (place as u16 % 8, place as u16 / 8);
        assert_eq!(bench.accelerator.logical_core(CoreCoord::new(x, y)), Some(stream.core()));
        assert_eq!(events.len() as u64 + lost, PRINTS);
        let counters = stream.counters();
        assert_eq!(counters.produced - before.produced, PRINTS);
        assert_eq!(counters.delivered - before.delivered, events.len() as u64);
        let tile = (u32::from(x) + 100 * u32::from(y)).to_le_bytes().repeat(1_024);
        for event in events {
            assert_eq!(event.core, stream.core());
            match &*event.prefix {
                "tile" => assert!(event.data == tile, "tile of ({x}, {y})"),
                _ => {
                    // The stream may have served another device before.
                    let number = event.sequence - before.produced;
                    assert_eq!(event.data, (number as u32).to_le_bytes());
                }
            }
        }
    }
    assert_eq!(bench.accelerator.debug_stream(CoreCoord::new(8, 0)).map(Stream::core), None);
}

#[test]
fn a_full_stream_costs_events_and_never_stalls_a_kernel() {
    const PRINTS: u64 = DEFAULT_MAX_EVENTS + 5_000;
    let bench = Bench::new();
    let stream = bench.accelerator.debug_stream(ORIGIN).unwrap();
    let before = stream.counters();
    let mut consumer = stream.connect().unwrap();
    let one = cores(1, 1);
    let text = "KERNEL_MAIN { for (uint32_t i = 0; i < get_common_arg_val(0); i++)
                                device_print_scalar(\"count\", i); }";
    let mut printing = kernel("print", text, &one);
    printing.common_runtime_arguments.push(PRINTS as u32);
    // It ends although nothing was read.
    run(&bench, &program(printing, &[]));
    let counters = stream.counters();
    let expected = Losses { events: before.lost.events + 5_000, ..before.lost };
    assert_eq!((counters.waiting, counters.lost), (DEFAULT_MAX_EVENTS, expected));
    let (events, lost) = everything(&mut consumer);
    assert_eq!((events.len() as u64, lost), (DEFAULT_MAX_EVENTS, 5_000));
    let last = events.last().unwrap();
    assert_eq!(last.data, (DEFAULT_MAX_EVENTS as u32 - 1).to_le_bytes(), "the newest are lost");
}
