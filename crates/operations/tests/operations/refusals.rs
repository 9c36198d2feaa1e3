//! What is not possible is refused with an error that names the operation and the operand, and
//! harms nothing that follows.

use std::error::Error;

use telltale_operations::{
    Binary, MatmulAttributes, MatmulFactory, OperationError, Reduction, SoftmaxAttributes, Tensor,
    Unary, row_major, tiled,
};
use telltale_program_cache::{DataFormat, Layout, OperandSpec, Shape, Tile};

use crate::operations::bench::Bench;

const FLOAT: DataFormat = DataFormat::Float32;

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, OperationError>, parts: &[&str]) {
    let error = result.unwrap_err();
    assert!(matches!(error, OperationError::Refused(_)), "{error:?}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{text}` does not say `{part}`");
    }
}

fn zeros(bench: &Bench, shape: &[u32]) -> Tensor {
    bench.session.zeros(&row_major(shape, FLOAT)).unwrap()
}

#[test]
fn operands_that_do_not_fit_are_named() {
    let bench = Bench::new();
    let session = &bench.session;
    let [a, b, vector] = [&[3, 4][..], &[5, 6], &[7]].map(|shape| zeros(&bench, shape));
    let tokens = session.indices(&row_major(&[2], DataFormat::UInt32), &[0, 1]).unwrap();

    refused(session.binary(Binary::Add, &a, &b), &["binary", "`b`", "[5, 6]", "[3, 4]"]);
    refused(session.binary(Binary::Add, &tokens, &a), &["binary", "`a`", "UInt32"]);
    refused(session.unary(Unary::Relu, &tokens, 0.0), &["unary", "`x`", "UInt32"]);
    refused(session.unary_into(Unary::Relu, &a, 0.0, &b), &["unary", "`result`", "[5, 6]"]);
    refused(session.binary_into(Binary::Add, &a, &b, &a), &["binary", "`b`"]);
    let row = zeros(&bench, &[1, 4]);
    let product = MatmulAttributes::default();
    refused(session.matmul(product, &a, &b, None), &["matmul", "`b`", "is 5", "is 4"]);
    refused(session.matmul(product, &vector, &b, None), &["matmul", "`a`", "1 dimensions"]);
    let square = zeros(&bench, &[4, 4]);
    let bias = Some(&row);
    refused(session.matmul(product, &a, &square, bias), &["matmul", "`bias`", "[1, 4]", "[4]"]);
    refused(session.reduce(Reduction::Sum, &a, 2), &["reduce", "`x`", "no dimension 2"]);
    refused(session.transpose(&vector), &["transpose", "`x`"]);
    refused(session.permute(&a, &[0, 0]), &["permute", "`x`", "[0, 0]"]);
    refused(session.slice(&a, &[0, 2], &[3, 5]), &["slice", "`x`", "[3, 5]"]);
    refused(session.repeat(&a, &[2]), &["repeat", "`x`"]);
    refused(session.reshape(&a, &[5]), &["reshape", "`x`", "[5]"]);
    refused(session.concat(&[], 0), &["concat", "inputs"]);
    refused(session.concat(&[&a, &b], 0), &["concat", "`inputs[1]`", "[5, 6]"]);
    refused(session.layer_norm(&a, &vector, &row, 0.1), &["layer_norm", "`gamma`", "[7]"]);
    let long = zeros(&bench, &[2, 65_537]);
    refused(session.print("x", &long), &["print", "`x`", "262148 bytes"]);
    refused(session.print(&"x".repeat(512), &a), &["print", "`prefix`", "511 bytes"]);
    refused(session.print("\0", &a), &["print", "`prefix`"]);
    refused(session.embedding(&a, &b), &["embedding", "`tokens`", "Float32"]);
    refused(session.embedding(&tokens, &vector), &["embedding", "`table`"]);
    refused(session.cross_entropy(&a, &tokens), &["cross_entropy", "`targets`", "[2]", "[3]"]);
}

#[test]
fn a_result_in_the_place_of_a_smaller_operand_is_refused() {
    let bench = Bench::new();
    let (a, row) = (zeros(&bench, &[3, 4]), zeros(&bench, &[12]));
    let spread = bench.session.reshape(&a, &[12, 1]).unwrap();
    refused(
        bench.session.binary_into(
            Binary::Add,
            &spread,
            &row,
            &bench.session.empty(&row_major(&[3, 4], FLOAT)).unwrap(),
        ),
        &["binary", "`result`"],
    );
    let flat = bench.session.reshape(&a, &[12]).unwrap();
    let other = bench.session.reshape(&a, &[1, 12]).unwrap();
    let row = bench.session.reshape(&row, &[1, 12]).unwrap();
    refused(
        bench.session.binary_into(Binary::Add, &row, &flat, &other),
        &["binary", "`result`", "lies on"],
    );
}

#[test]
fn tensors_that_cannot_be_are_refused() {
    let bench = Bench::new();
    let session = &bench.session;
    let small = Tile { height: 16, ..Tile::STANDARD };
    let other: OperandSpec = OperandSpec { layout: Layout::Tiled(small), ..tiled(&[4, 4], FLOAT) };
    refused(session.empty(&other), &["tensor", "layout"]);
    for shape in [&[2, 0][..], &[1 << 16, 1 << 16], &[u32::MAX; 4], &[1; 5]] {
        refused(session.empty(&row_major(shape, FLOAT)), &["tensor", "shape"]);
    }
    refused(session.tensor(&row_major(&[2, 2], FLOAT), &[1.0]), &["1 were given for 4"]);
    refused(session.indices(&row_major(&[1], FLOAT), &[1]), &["UInt32"]);
    refused(
        session.empty(&OperandSpec { shape: Shape::new(&[1 << 15; 3]), ..tiled(&[1], FLOAT) }),
        &["shape"],
    );
}

#[test]
fn what_l1_cannot_hold_is_refused_before_it_is_tried() {
    let bench = Bench::new();
    let wide = zeros(&bench, &[2, 40_000]);
    let attributes = SoftmaxAttributes::default();
    refused(bench.session.softmax(attributes, &wide, 1.0), &["softmax", "`x`", "40000"]);
    refused(bench.session.reduce(Reduction::Sum, &wide, 1), &["reduce", "`x`", "40000"]);
    let reuse =
        MatmulAttributes { factory: MatmulFactory::MultiCoreReuse, ..MatmulAttributes::default() };
    let tall = zeros(&bench, &[40_000, 2]);
    let error = bench.session.matmul(reuse, &wide, &tall, None).unwrap_err();
    refused_by_factory(&error, "no panel fits");
    bench.session.matmul(MatmulAttributes::default(), &wide, &tall, None).unwrap();
    bench.session.finish().unwrap();
}

#[track_caller]
fn refused_by_factory(error: &OperationError, part: &str) {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        texts.push(error.to_string());
        source = error.source();
    }
    assert!(texts.iter().any(|text| text.contains(part)), "{texts:?}");
}

#[test]
fn the_widest_rows_that_are_taken_do_fit() {
    let bench = Bench::new();
    let session = &bench.session;
    let wide = zeros(&bench, &[3, 16_384]);
    let y = session.softmax(SoftmaxAttributes::default(), &wide, 1.0).unwrap();
    let values = session.read(&y).unwrap();
    assert!(values.iter().all(|value| *value == 1.0 / 16_384.0));
    session.softmax_backward(SoftmaxAttributes::default(), &y, &wide, 1.0).unwrap();
    let gamma = zeros(&bench, &[16_384]);
    let forward = session.layer_norm(&wide, &gamma, &gamma, 1e-5).unwrap();
    session.layer_norm_backward(&wide, &gamma, &forward, &wide).unwrap();
    let targets = session.indices(&row_major(&[3], DataFormat::UInt32), &[0; 3]).unwrap();
    let loss = session.cross_entropy(&wide, &targets).unwrap();
    let loss = session.read(&loss).unwrap()[0];
    assert!((loss - 16_384_f32.ln()).abs() < 1e-4, "{loss}");
    session.cross_entropy_backward(&wide, &targets, 1.0).unwrap();
    session.finish().unwrap();
}

#[test]
fn a_token_beyond_the_table_is_reported_and_the_session_goes_on() {
    let bench = Bench::new();
    let session = &bench.session;
    let table = session.tensor(&row_major(&[2, 3], FLOAT), &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let table = table.unwrap();
    let tokens = session.indices(&row_major(&[2], DataFormat::UInt32), &[1, 2]).unwrap();
    let read = session.embedding(&tokens, &table).and_then(|y| session.read(&y));
    let error = read.unwrap_err();
    refused_by_factory(&error, "embedding");
    session.finish().unwrap_err();
    session.write_indices(&tokens, &[1, 0]).unwrap();
    let y = session.embedding(&tokens, &table).unwrap();
    assert_eq!(session.read(&y).unwrap(), [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
}
