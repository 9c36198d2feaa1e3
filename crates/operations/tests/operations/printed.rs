//! Tensors that a kernel prints: the events have the bytes that a read gives, bit by bit.

use telltale_debug_stream::{Consumer, Event, NextEvent};
use telltale_operations::{MAX_PRINTED_BYTES, PRINTING_CORE, Tensor, row_major};
use telltale_program_cache::DataFormat;

use crate::operations::bench::{Bench, FORMS};

fn connected(bench: &Bench) -> Consumer {
    let accelerator = bench.session.accelerator();
    accelerator.debug_stream(PRINTING_CORE).unwrap().connect().unwrap()
}

fn printed(bench: &Bench, consumer: &mut Consumer, prefix: &str, tensor: &Tensor) -> Vec<Event> {
    bench.session.print(prefix, tensor).unwrap();
    bench.session.finish().unwrap();
    let mut events = Vec::new();
    while let Some(next) = consumer.try_next().unwrap() {
        let NextEvent::Event(event) = next else { panic!("{next:?}") };
        events.push(event);
    }
    events
}

fn bytes_of(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|event| event.data.iter().copied()).collect()
}

#[test]
fn a_tensor_of_any_form_is_printed_bit_by_bit_in_row_major_order() {
    let bench = Bench::new();
    let mut consumer = connected(&bench);
    for form in FORMS {
        let dtype = if form.format == DataFormat::Float32 { "float32" } else { "bfloat16" };
        for shape in [&[1][..], &[7], &[5, 40], &[2, 3, 33, 65], &[3, 32, 32]] {
            let count = shape.iter().product::<u32>();
            let values: Vec<f32> = (0..count).map(|i| (i as f32).sin() * 1e3).collect();
            let tensor = bench.session.tensor(&form.spec(shape), &values).unwrap();
            let events = printed(&bench, &mut consumer, "x", &tensor);
            let [event] = &events[..] else { panic!("{events:?}") };
            let columns = *shape.last().unwrap();
            assert_eq!(event.shape, [u64::from(count / columns), u64::from(columns)]);
            assert_eq!((&*event.prefix, &*event.dtype), ("x", dtype));
            // The same numbers as the device would store them row by row.
            let plain = row_major(shape, form.format);
            let plain =
                bench.session.tensor(&plain, &bench.session.read(&tensor).unwrap()).unwrap();
            assert_eq!(event.data, bench.session.read_bytes(&plain).unwrap(), "{form:?} {shape:?}");
        }
    }
    assert_eq!(bench.session.accelerator().refused_prints(), 0);
}

#[test]
fn a_large_tensor_is_printed_in_blocks_of_whole_rows() {
    let bench = Bench::new();
    let mut consumer = connected(&bench);
    let values: Vec<u32> = (0..300 * 3_000).collect();
    let spec = row_major(&[3, 100, 3_000], DataFormat::UInt32);
    let tensor = bench.session.indices(&spec, &values).unwrap();
    let events = printed(&bench, &mut consumer, "tokens", &tensor);
    let rows = u64::from(MAX_PRINTED_BYTES) / 12_000;
    let shapes: Vec<_> = events.iter().map(|event| event.shape.clone()).collect();
    assert_eq!(shapes[0], [rows, 3_000]);
    assert_eq!(shapes.iter().map(|shape| shape[0]).sum::<u64>(), 300);
    assert_eq!(bytes_of(&events), bench.session.read_bytes(&tensor).unwrap());
    let iterations: Vec<_> = events.iter().map(|event| event.iteration.unwrap()).collect();
    assert_eq!(iterations, (0..events.len() as u64).collect::<Vec<_>>());
}

#[test]
fn each_prefix_is_a_program_of_its_own_and_changes_no_other() {
    let bench = Bench::new();
    let mut consumer = connected(&bench);
    let tensor = bench.session.tensor(&row_major(&[2], DataFormat::Float32), &[1.0, -0.0]).unwrap();
    let programs = |bench: &Bench| bench.session.cache().counts().misses;
    for (prefix, expected) in [("a", 1), ("a", 1), ("\"; #error\\ é", 2), ("a", 2), ("", 3)] {
        let events = printed(&bench, &mut consumer, prefix, &tensor);
        assert_eq!(events[0].prefix, prefix);
        assert_eq!(bytes_of(&events), bench.session.read_bytes(&tensor).unwrap());
        assert_eq!(programs(&bench), expected, "{prefix:?}");
    }
    drop(consumer);
    bench.session.print("a", &tensor).unwrap();
    bench.session.finish().unwrap();
    assert_eq!(programs(&bench), 3, "who reads is no part of a program");
}
