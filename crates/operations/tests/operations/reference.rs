//! Each operation against PyTorch's results, in all formats and layouts.

use telltale_operations::{
    AdamW, AdamWState, Binary, MatmulAttributes, MatmulFactory, Reduction, SoftmaxAttributes, Unary,
};
use telltale_program_cache::DataFormat;

use crate::operations::bench::{Bench, Case, FORMS, Form};

/// Single precision, row after row.
const PLAIN: Form = FORMS[0];

#[test]
fn unary_functions() {
    let bench = Bench::new();
    let functions = [
        ("negate", Unary::Negate),
        ("exponential", Unary::Exponential),
        ("logarithm", Unary::Logarithm),
        ("square_root", Unary::SquareRoot),
        ("reciprocal_root", Unary::ReciprocalRoot),
        ("relu", Unary::Relu),
        ("gelu", Unary::Gelu),
        ("tanh", Unary::Tanh),
        ("sigmoid", Unary::Sigmoid),
        ("scale", Unary::Scale),
        ("shift", Unary::Shift),
    ];
    for (name, function) in functions {
        let case = Case::read(&format!("unary_{name}"));
        for form in FORMS {
            let x = bench.tensor(&case, "x", form);
            let y = bench.session.unary(function, &x, case.parameter(1)).unwrap();
            bench.check(&y, &case, "y", form.tolerance());
            bench.session.unary_into(function, &x, case.parameter(1), &x).unwrap();
            bench.check(&x, &case, "y", form.tolerance());
        }
    }
}

#[test]
fn copies_change_format_and_layout() {
    let bench = Bench::new();
    let case = Case::read("unary_negate");
    for from in FORMS {
        for to in FORMS {
            let x = bench.tensor(&case, "x", from);
            let y = bench.session.empty(&to.spec(x.shape())).unwrap();
            bench.session.unary_into(Unary::Copy, &x, 0.0, &y).unwrap();
            bench.check(&y, &case, "x", 0.0);
        }
    }
}

#[test]
fn binary_functions_with_broadcast() {
    let bench = Bench::new();
    let function = |name: &str| match name {
        "add" => Binary::Add,
        "subtract" => Binary::Subtract,
        "multiply" => Binary::Multiply,
        "divide" => Binary::Divide,
        "maximum" => Binary::Maximum,
        "gelu_slope" => Binary::GeluSlope,
        "relu_slope" => Binary::ReluSlope,
        other => panic!("unknown function {other}"),
    };
    for case in Case::all("binary_") {
        let function = function(&case.parameters[0]);
        for form in FORMS {
            for other in [form, PLAIN] {
                let (a, b) = (bench.tensor(&case, "a", form), bench.tensor(&case, "b", other));
                let y = bench.session.binary(function, &a, &b).unwrap();
                bench.check(&y, &case, "y", form.tolerance());
            }
        }
    }
}

#[test]
fn matrix_products_of_every_factory() {
    let bench = Bench::new();
    let factories = [
        MatmulFactory::Automatic,
        MatmulFactory::SingleCore,
        MatmulFactory::MultiCore,
        MatmulFactory::MultiCoreReuse,
    ];
    for case in Case::all("matmul_") {
        for factory in factories {
            let attributes = MatmulAttributes { factory, ..MatmulAttributes::default() };
            for form in FORMS {
                let (a, b) = (bench.tensor(&case, "a", form), bench.tensor(&case, "b", form));
                let y = bench.session.matmul(attributes, &a, &b, None).unwrap();
                bench.check(&y, &case, "y", form.tolerance());
                if case.has("bias") {
                    let bias = bench.tensor(&case, "bias", form);
                    let y = bench.session.matmul(attributes, &a, &b, Some(&bias)).unwrap();
                    bench.check(&y, &case, "y_bias", form.tolerance());
                }
            }
        }
    }
}

#[test]
fn matrix_products_of_transposed_operands() {
    let bench = Bench::new();
    for case in Case::all("matmul_") {
        for form in [FORMS[0], FORMS[1], FORMS[3]] {
            let (a, b) = (bench.tensor(&case, "a", form), bench.tensor(&case, "b", form));
            let (at, bt) = (bench.session.transpose(&a), bench.session.transpose(&b));
            let (at, bt) = (at.unwrap(), bt.unwrap());
            for factory in [MatmulFactory::Automatic, MatmulFactory::SingleCore] {
                for (a_transposed, b_transposed) in [(true, false), (false, true), (true, true)] {
                    let attributes = MatmulAttributes { a_transposed, b_transposed, factory };
                    let left = if a_transposed { &at } else { &a };
                    let right = if b_transposed { &bt } else { &b };
                    let y = bench.session.matmul(attributes, left, right, None).unwrap();
                    bench.check(&y, &case, "y", form.tolerance());
                }
            }
        }
    }
}

#[test]
fn reductions_along_each_dimension() {
    let bench = Bench::new();
    let reductions =
        [("sum", Reduction::Sum), ("mean", Reduction::Mean), ("maximum", Reduction::Maximum)];
    for case in Case::all("reduce_") {
        for form in FORMS {
            let x = bench.tensor(&case, "x", form);
            for (name, reduction) in reductions {
                let y = bench.session.reduce(reduction, &x, case.parameter(0)).unwrap();
                bench.check(&y, &case, name, form.tolerance());
            }
        }
    }
}

#[test]
fn softmax_forward_and_backward() {
    let bench = Bench::new();
    for case in Case::all("softmax_") {
        let attributes = SoftmaxAttributes { causal: case.parameters[0] == "causal" };
        let scale = case.parameter(1);
        for form in FORMS {
            let x = bench.tensor(&case, "x", form);
            let y = bench.session.softmax(attributes, &x, scale).unwrap();
            bench.check(&y, &case, "y", form.tolerance());
            let slope = bench.tensor(&case, "slope", form);
            let exact = bench.tensor(&case, "y", Form { format: DataFormat::Float32, ..form });
            let dx = bench.session.softmax_backward(attributes, &exact, &slope, scale).unwrap();
            bench.check(&dx, &case, "dx", form.tolerance());
        }
    }
}

#[test]
fn layer_norm_forward_and_backward() {
    let bench = Bench::new();
    for case in Case::all("layer_norm_") {
        for form in FORMS {
            let [x, gamma, beta, slope] =
                ["x", "gamma", "beta", "slope"].map(|name| bench.tensor(&case, name, form));
            let forward = bench.session.layer_norm(&x, &gamma, &beta, case.parameter(0)).unwrap();
            bench.check(&forward.y, &case, "y", form.tolerance());
            let gradients =
                bench.session.layer_norm_backward(&x, &gamma, &forward, &slope).unwrap();
            bench.check(&gradients.x, &case, "dx", form.tolerance());
            bench.check(&gradients.gamma, &case, "dgamma", form.tolerance());
            bench.check(&gradients.beta, &case, "dbeta", form.tolerance());
        }
    }
}

#[test]
fn embedding_forward_and_backward() {
    let bench = Bench::new();
    for case in Case::all("embedding_") {
        for form in FORMS {
            let (tokens, table) =
                (bench.indices(&case, "tokens"), bench.tensor(&case, "table", form));
            let y = bench.session.embedding(&tokens, &table).unwrap();
            bench.check(&y, &case, "y", 0.0);
            let slope = bench.tensor(&case, "slope", form);
            let rows = table.shape()[0];
            let gradient = bench.session.embedding_backward(&tokens, &slope, rows).unwrap();
            bench.check(&gradient, &case, "dtable", form.tolerance());
        }
    }
}

#[test]
fn movements_are_exact() {
    let bench = Bench::new();
    let session = &bench.session;
    let numbers = |case: &Case| -> Vec<u32> {
        case.parameters.iter().map(|number| number.parse().unwrap()).collect()
    };
    for form in FORMS {
        for case in Case::all("permute_") {
            let order: Vec<usize> = numbers(&case).iter().map(|number| *number as usize).collect();
            let x = bench.tensor(&case, "x", form);
            bench.check(&session.permute(&x, &order).unwrap(), &case, "y", 0.0);
        }
        let case = Case::read("slice");
        let (starts, ends): (Vec<u32>, Vec<u32>) =
            numbers(&case).chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
        let x = bench.tensor(&case, "x", form);
        bench.check(&session.slice(&x, &starts, &ends).unwrap(), &case, "y", 0.0);

        let case = Case::read("repeat");
        let x = bench.tensor(&case, "x", form);
        bench.check(&session.repeat(&x, &numbers(&case)).unwrap(), &case, "y", 0.0);

        let case = Case::read("reshape");
        let x = bench.tensor(&case, "x", form);
        let y = session.reshape(&x, case.floats("y").0).unwrap();
        bench.check(&y, &case, "y", 0.0);
        assert_eq!(y.shares_buffer_with(&x), !form.tiled);

        for case in Case::all("concat_") {
            let (a, b) = (bench.tensor(&case, "a", form), bench.tensor(&case, "b", form));
            let y = session.concat(&[&a, &b], numbers(&case)[0]).unwrap();
            bench.check(&y, &case, "y", 0.0);
        }
    }
}

#[test]
fn cross_entropy_forward_and_backward() {
    let bench = Bench::new();
    for case in Case::all("cross_entropy_") {
        for form in FORMS {
            let logits = bench.tensor(&case, "logits", form);
            let targets = bench.indices(&case, "targets");
            let loss = bench.session.cross_entropy(&logits, &targets).unwrap();
            bench.check(&loss, &case, "loss", PLAIN.tolerance());
            let slope = bench.session.cross_entropy_backward(&logits, &targets, 1.0).unwrap();
            bench.check(&slope, &case, "dlogits", form.tolerance());
        }
    }
}

#[test]
fn adamw_for_some_steps() {
    let bench = Bench::new();
    let case = Case::read("adamw");
    let constants = AdamW {
        learning_rate: case.parameter(0),
        beta1: case.parameter(1),
        beta2: case.parameter(2),
        epsilon: case.parameter(3),
        weight_decay: case.parameter(4),
    };
    for form in FORMS {
        // The parameter and the moments in single precision: a step is smaller than a bfloat16.
        let exact = Form { format: DataFormat::Float32, ..form };
        let parameter = bench.tensor(&case, "parameter", exact);
        let first = bench.session.zeros(parameter.spec()).unwrap();
        let second = bench.session.zeros(parameter.spec()).unwrap();
        for step in 0..3 {
            let slope = bench.tensor(&case, &format!("slope_{step}"), form);
            let state = AdamWState { parameter: &parameter, first: &first, second: &second };
            bench.session.adamw(&constants, step + 1, state, &slope).unwrap();
        }
        bench.check(&parameter, &case, "result", exact.tolerance());
    }
    let counts = bench.session.cache().counts();
    assert_eq!(counts.misses, 4, "a step changes no program: {counts:?}");
}
