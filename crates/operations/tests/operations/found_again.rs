//! Programs that are found again do the right thing with what changed, by class of the mistakes
//! that were made with caches elsewhere. Each test says how many programs there must be.

use telltale_operations::{
    AdamW, AdamWState, Binary, MatmulAttributes, SoftmaxAttributes, Tensor, Unary, row_major,
};
use telltale_program_cache::{CacheMode, DataFormat};

use crate::operations::bench::Bench;

fn both_styles() -> [Bench; 2] {
    [Bench::new(), Bench::by_hand(CacheMode::On)]
}

fn tensor(bench: &Bench, shape: &[u32], values: &[f32]) -> Tensor {
    bench.session.tensor(&row_major(shape, DataFormat::Float32), values).unwrap()
}

#[track_caller]
fn check(bench: &Bench, result: &Tensor, expected: &[f32], programs: u64) {
    assert_eq!(bench.session.read(result).unwrap(), expected);
    assert_eq!(bench.session.cache().counts().misses, programs);
}

#[test]
fn aliasing_of_operands_at_the_first_dispatch_binds_nothing() {
    for bench in both_styles() {
        let product = |a, b| bench.session.matmul(MatmulAttributes::default(), a, b, None).unwrap();
        let x = tensor(&bench, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let y = tensor(&bench, &[2, 2], &[0.0, 1.0, 1.0, 0.0]);
        check(&bench, &product(&x, &x), &[7.0, 10.0, 15.0, 22.0], 1);
        check(&bench, &product(&x, &y), &[2.0, 1.0, 4.0, 3.0], 1);
        check(&bench, &product(&y, &x), &[3.0, 4.0, 1.0, 2.0], 1);
    }
}

#[test]
fn a_result_in_place_is_no_other_program() {
    for bench in both_styles() {
        let x = tensor(&bench, &[3], &[1.0, 2.0, 3.0]);
        let y = tensor(&bench, &[3], &[5.0, 6.0, 7.0]);
        let sum = bench.session.binary(Binary::Add, &x, &y).unwrap();
        bench.session.binary_into(Binary::Add, &x, &y, &x).unwrap();
        check(&bench, &x, &[6.0, 8.0, 10.0], 1);
        bench.session.binary_into(Binary::Add, &y, &y, &y).unwrap();
        check(&bench, &y, &[10.0, 12.0, 14.0], 1);
        check(&bench, &sum, &[6.0, 8.0, 10.0], 1);
    }
}

#[test]
fn no_address_is_stale_when_buffers_are_freed_and_used_again() {
    for bench in both_styles() {
        for round in 0..20 {
            // What is kept shifts the addresses of the next round.
            let kept: Vec<Tensor> =
                (0..round % 3).map(|_| tensor(&bench, &[2], &[9.0; 2])).collect();
            let value = round as f32;
            let x = tensor(&bench, &[2], &[value, -value]);
            let y = bench.session.binary(Binary::Multiply, &x, &x).unwrap();
            check(&bench, &y, &[value * value; 2], 1);
            drop(kept);
        }
    }
}

#[test]
fn no_value_of_a_dispatch_is_frozen() {
    for bench in both_styles() {
        let session = &bench.session;
        let x = tensor(&bench, &[2], &[0.0, 1.0]);
        for scale in [0.0_f32, 1.0, 3.0] {
            let y = session.softmax(SoftmaxAttributes::default(), &x, scale).unwrap();
            let shares = session.read(&y).unwrap();
            assert!((shares[1] / shares[0] - scale.exp()).abs() < 1e-5 * scale.exp());
        }
        assert_eq!(session.cache().counts().misses, 1);
        check(&bench, &session.unary(Unary::Scale, &x, 2.0).unwrap(), &[0.0, 2.0], 2);
        check(&bench, &session.unary(Unary::Scale, &x, 4.0).unwrap(), &[0.0, 4.0], 2);
    }
}

#[test]
fn a_step_of_the_optimizer_changes_no_program() {
    let bench = Bench::new();
    let [parameter, first, second, gradient] =
        [1.0, 0.0, 0.0, 1.0].map(|value| tensor(&bench, &[2], &[value; 2]));
    let state = AdamWState { parameter: &parameter, first: &first, second: &second };
    for step in 1..=4 {
        let learning_rate = 0.5 / f32::from(u16::try_from(step).unwrap());
        let constants = AdamW { learning_rate, weight_decay: 0.0, ..AdamW::default() };
        let before = bench.session.read(&parameter).unwrap()[0];
        bench.session.adamw(&constants, step, state, &gradient).unwrap();
        // With one gradient all along, each step is as long as the learning rate.
        let after = bench.session.read(&parameter).unwrap()[0];
        assert!((before - after - learning_rate).abs() < 1e-5, "step {step}: {before} to {after}");
    }
    assert_eq!(bench.session.cache().counts().misses, 1);
}

#[test]
fn structure_is_keyed_shapes_formats_options_and_attributes() {
    for bench in both_styles() {
        let session = &bench.session;
        let x = tensor(&bench, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let bias = tensor(&bench, &[2], &[10.0, 20.0]);
        let plain = MatmulAttributes::default();
        let transposed = MatmulAttributes { b_transposed: true, ..plain };
        let expected = [7.0, 10.0, 15.0, 22.0];
        check(&bench, &session.matmul(plain, &x, &x, None).unwrap(), &expected, 1);
        let with_bias = session.matmul(plain, &x, &x, Some(&bias)).unwrap();
        check(&bench, &with_bias, &[17.0, 30.0, 25.0, 42.0], 2);
        let turned = session.matmul(transposed, &x, &x, None).unwrap();
        check(&bench, &turned, &[5.0, 11.0, 11.0, 25.0], 3);
        let half = session.empty(&row_major(&[2, 2], DataFormat::BFloat16)).unwrap();
        session.unary_into(Unary::Copy, &x, 0.0, &half).unwrap();
        check(&bench, &session.matmul(plain, &half, &x, None).unwrap(), &expected, 5);
        let wide = session.reshape(&x, &[1, 4]).unwrap();
        let tall = session.reshape(&x, &[4, 1]).unwrap();
        check(&bench, &session.matmul(plain, &wide, &tall, None).unwrap(), &[30.0], 6);
    }
}
