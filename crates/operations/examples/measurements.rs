//! Prints what operations cost on this machine: the rate of matrix products on one core, and what
//! a dispatch of small operations takes of the caller's time and altogether.
//!
//!     cargo run --release -p telltale-operations --example measurements
#![allow(clippy::unwrap_used, reason = "a failed step ends the program with its reason")]

use std::path::PathBuf;
use std::time::Instant;

use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_operations::{
    Binary, MatmulAttributes, MatmulFactory, Session, SoftmaxAttributes, Tensor, Unary, row_major,
    tiled,
};
use telltale_program_cache::{DataFormat, OperandSpec, ProgramCache};
use telltale_runtime::{Options, Runtime};

/// Repetitions of a dispatch.
const DISPATCHES: u32 = 2_000;

fn main() {
    let root = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let machine = root.join("machine");
    let emulator = Emulator::start(&machine, MachineKind::N300, EmulatorOptions::default());
    let emulator = emulator.unwrap();
    let runtime =
        Runtime::start(Options { root: Some(machine.clone()), ..Options::new("figures") });
    let options = AcceleratorOptions {
        root: Some(machine),
        kernel_cache: Some(std::env::args_os().nth(1).map_or(root.join("kernels"), PathBuf::from)),
        ..AcceleratorOptions::default()
    };
    let accelerator = Accelerator::open(&options, &runtime).unwrap();
    let session = Session::new(ProgramCache::from_environment(accelerator).unwrap());
    products(&session);
    dispatches(&session);
    println!("{:?}", session.accelerator().kernel_counters());
    println!("{:?}", session.cache().counts());
    drop(session);
    drop(emulator);
    std::fs::remove_dir_all(root).unwrap();
}

fn random(session: &Session, spec: &OperandSpec) -> Tensor {
    let mut state = 1_u32;
    let count = spec.shape.element_count().unwrap();
    let values: Vec<f32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect();
    session.tensor(spec, &values).unwrap()
}

/// Runs something until a good part of a second is over and gives the seconds of one run.
fn timed(session: &Session, mut run: impl FnMut()) -> f64 {
    run();
    session.finish().unwrap();
    let (started, mut runs) = (Instant::now(), 0);
    while started.elapsed().as_secs_f64() < 0.3 {
        for _ in 0..8 {
            run();
        }
        session.finish().unwrap();
        runs += 8;
    }
    started.elapsed().as_secs_f64() / f64::from(runs)
}

/// Makes a specification in a layout.
type SpecOf = fn(&[u32], DataFormat) -> OperandSpec;

fn products(session: &Session) {
    for (layout, spec) in [("row-major", row_major as SpecOf), ("tiled", tiled)] {
        for format in [DataFormat::Float32, DataFormat::BFloat16] {
            for (rows, inner, columns) in [(128, 128, 128), (512, 128, 512), (512, 512, 512)] {
                let a = random(session, &spec(&[rows, inner], format));
                let b = random(session, &spec(&[inner, columns], format));
                for factory in [
                    MatmulFactory::SingleCore,
                    MatmulFactory::MultiCore,
                    MatmulFactory::MultiCoreReuse,
                    MatmulFactory::Automatic,
                ] {
                    let attributes = MatmulAttributes { factory, ..MatmulAttributes::default() };
                    let seconds = timed(session, || {
                        session.matmul(attributes, &a, &b, None).unwrap();
                    });
                    let operations = 2.0 * f64::from(rows) * f64::from(inner) * f64::from(columns);
                    println!(
                        "matmul {rows}x{inner}x{columns} {layout} {format:?} {factory:?}: \
                         {:.1} GFLOP/s, {:.0} us",
                        operations / seconds / 1e9,
                        seconds * 1e6
                    );
                }
            }
        }
    }
}

fn dispatches(session: &Session) {
    let x = random(session, &row_major(&[32, 64], DataFormat::Float32));
    let y = session.empty(x.spec()).unwrap();
    let w = random(session, &row_major(&[64, 64], DataFormat::Float32));
    let report = |name: &str, run: &mut dyn FnMut()| {
        run();
        session.finish().unwrap();
        let started = Instant::now();
        for _ in 0..DISPATCHES {
            run();
        }
        let called = started.elapsed();
        session.finish().unwrap();
        let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / f64::from(DISPATCHES);
        println!("{name}: {:.1} us a call, {:.1} us done", each(called), each(started.elapsed()));
    };
    report("allocation alone", &mut || {
        session.empty(x.spec()).unwrap();
    });
    report("unary into", &mut || {
        session.unary_into(Unary::Relu, &x, 0.0, &y).unwrap();
    });
    report("binary", &mut || {
        session.binary(Binary::Add, &x, &x).unwrap();
    });
    report("softmax", &mut || {
        session.softmax(SoftmaxAttributes::default(), &x, 1.0).unwrap();
    });
    report("matmul", &mut || {
        session.matmul(MatmulAttributes::default(), &x, &w, None).unwrap();
    });
    let large = random(session, &row_major(&[8, 64, 512], DataFormat::Float32));
    report("gelu of 1 MiB", &mut || {
        session.unary(Unary::Gelu, &large, 0.0).unwrap();
    });
    report("add of 1 MiB", &mut || {
        session.binary(Binary::Add, &large, &large).unwrap();
    });
    report("transpose of 1 MiB", &mut || {
        session.transpose(&large).unwrap();
    });
    let heads = random(session, &row_major(&[8, 64, 8, 64], DataFormat::Float32));
    report("permute of 1 MiB", &mut || {
        session.permute(&heads, &[0, 2, 1, 3]).unwrap();
    });
    report("softmax of 1 MiB", &mut || {
        session.softmax(SoftmaxAttributes { causal: true }, &large, 0.1).unwrap();
    });
}
