//! The accelerator behind a program cache.

use std::sync::Arc;

use telltale_program_cache::{
    CacheOptions, CoreCoord, DispatchError, ProgramCache, ProgramDescriptor,
};

use telltale_emulator::Buffer;
use telltale_schema::memory::MemoryKind;

use crate::accelerator::bench::{Bench, TILE_BYTES, kernel, tiles};

/// c += a * b, tiles at the three addresses.
fn multiply(addresses: [u32; 3]) -> ProgramDescriptor {
    let text = "
KERNEL_MAIN {
  for (int i = 0; i < 3; i++) {
    cb_reserve_back(i, 1);
    noc_read_page(get_arg_val(i), 0, 4096, 4096, get_write_ptr(i));
  }
  tile_multiply_add(get_write_ptr(0), get_write_ptr(1), get_write_ptr(2));
  noc_write_page(get_arg_val(2), 0, 4096, 4096, get_write_ptr(2));
}";
    let core = CoreCoord::new(3, 4);
    let mut multiply = kernel("multiply", text, &core.into());
    multiply.runtime_arguments.push(core, &addresses);
    ProgramDescriptor {
        kernels: [multiply].into_iter().collect(),
        circular_buffers: (0..3).map(|index| tiles(index, 1, &core.into())).collect(),
        ..ProgramDescriptor::default()
    }
}

#[test]
fn a_cached_program_runs_with_the_words_of_each_dispatch() {
    let bench = Bench::new();
    let cache = ProgramCache::new(Arc::clone(&bench.accelerator), CacheOptions::default());
    let tile = |number: fn(u16) -> f32| (0..1_024).map(number).collect::<Vec<f32>>();
    let a = tile(|place| f32::from(place % 7) - 3.0);
    let b = tile(|place| f32::from(place % 5) * 0.5);
    // Small numbers, so that the sums are exact in any order.
    let product = |a: &[f32], b: &[f32]| -> Vec<f32> {
        let sum = |row: usize, column: usize| {
            (0..32).map(|inner| a[32 * row + inner] * b[32 * inner + column]).sum::<f32>()
        };
        (0..1_024).map(|place| 1.0 + sum(place / 32, place % 32)).collect()
    };
    let (buffer_a, buffer_b) = (bench.buffer(&a), bench.buffer(&b));
    for (left, right, expected) in [
        (&buffer_a, &buffer_b, product(&a, &b)),
        (&buffer_b, &buffer_a, product(&b, &a)),
        (&buffer_a, &buffer_a, product(&a, &a)),
    ] {
        let to = bench.buffer(&[1.0; 1_024]);
        let held = [Arc::clone(left), Arc::clone(right), Arc::clone(&to)];
        let described = multiply([left.address(), right.address(), to.address()]);
        let run = |program: &mut _| bench.accelerator.enqueue(program, &held);
        cache.dispatch_described(&described, run).unwrap().unwrap();
        assert_eq!(bench.numbers(&to), expected);
    }
    let counts = cache.counts();
    assert_eq!((counts.misses, counts.hits, counts.entries), (1, 2, 1));
    drop((buffer_a, buffer_b));
    cache.clear();
    assert_eq!(bench.allocated(), []);
}

/// Takes all of L1 but a rest in which no kernel has room.
fn fill_l1(bench: &Bench) -> Vec<Arc<Buffer>> {
    let mut filled = Vec::new();
    let mut bytes = 64 << 20;
    while bytes >= 64 << 10 {
        match bench.accelerator.allocate(MemoryKind::L1, bytes, 1 << 10) {
            Ok(buffer) => filled.push(buffer),
            Err(_) => bytes /= 2,
        }
    }
    filled
}

#[test]
fn programs_that_nobody_uses_make_room_for_one_that_lacks_memory() {
    let bench = Bench::new();
    let cache = ProgramCache::new(Arc::clone(&bench.accelerator), CacheOptions::default());
    let numbered = |number: u8| {
        let core = CoreCoord::new(0, 0).into();
        let text = format!("KERNEL_MAIN {{ (void)get_arg_val({number}); }}");
        let mut numbered = kernel("numbered", text, &core);
        numbered.runtime_arguments.push(CoreCoord::new(0, 0), &[0, 1]);
        ProgramDescriptor {
            kernels: [numbered].into_iter().collect(),
            ..ProgramDescriptor::default()
        }
    };
    let run = |program: &mut _| bench.accelerator.enqueue(program, &[]);
    cache.dispatch_described(&numbered(0), run).unwrap().unwrap();
    let filled = fill_l1(&bench);
    cache.dispatch_described(&numbered(1), run).unwrap().unwrap();
    assert_eq!((cache.entries(), cache.counts().evictions), (1, 1));
    bench.accelerator.finish().unwrap();

    let nested = cache.dispatch_described(&numbered(1), |_| {
        cache.dispatch_described(&numbered(0), |_| ()).map_err(|error| reported(&error))
    });
    let refused = nested.unwrap().unwrap_err();
    assert!(refused.contains("out of l1 memory: asked for "), "{refused}");
    drop(filled);
    cache.clear();
    assert_eq!(bench.allocated(), []);
}

/// An error with its causes.
fn reported(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn what_the_accelerator_refuses_is_reported_through_the_cache_and_kept_for_nobody() {
    let bench = Bench::new();
    let cache = ProgramCache::new(Arc::clone(&bench.accelerator), CacheOptions::default());
    let mut described = multiply([0; 3]);
    described.circular_buffers[1].total_bytes = 400 * TILE_BYTES;
    for _ in 0..2 {
        let refused = cache.dispatch_described(&described, |_| ()).unwrap_err();
        assert!(matches!(refused, DispatchError::Compile { .. }), "{refused}");
        assert_eq!(bench.allocated(), []);
    }
    assert_eq!((cache.entries(), cache.counts().failed_compiles), (0, 2));
}
