//! A fault belongs to the operation that made it: it is reported where a tensor of that operation is
//! read, with its name, and nothing else is blamed or held up.

use std::error::Error;

use telltale_operations::{OperationError, Session, Tensor, Unary, row_major};
use telltale_program_cache::{
    Argument, ComputeConfig, CoreCoord, DataFormat, FactoryError, KernelConfig, KernelDescriptor,
    KernelSource, OperandIndex, OperandSpecs, Operation, ProgramDescriptor,
};

use crate::operations::bench::Bench;

/// result = number, unless it must give up.
struct Give;

impl Operation for Give {
    const NAME: &'static str = "give";
    /// The number, and whether it gives up after having written it.
    type Attributes = (u32, bool);

    fn create(
        (number, fails): &(u32, bool),
        _operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let core = CoreCoord::new(0, 0);
        let fail = if *fails { format!("kernel_fail({number});") } else { String::new() };
        let text = format!(
            "KERNEL_MAIN {{ {fail} float value = {number};
             noc_write_bytes(get_arg_val(1), 0, 4, &value); }}"
        );
        let config = KernelConfig::Compute(ComputeConfig::default());
        let mut kernel =
            KernelDescriptor::new("giver", KernelSource::Text(text.into()), core, config);
        let address = |index| Argument::Address { operand: OperandIndex(index), offset_bytes: 0 };
        kernel.runtime_arguments.push(core, &[address(0), address(1)]);
        Ok(ProgramDescriptor {
            kernels: [kernel].into_iter().collect(),
            ..ProgramDescriptor::default()
        })
    }
}

fn number(session: &Session) -> Tensor {
    session.tensor(&row_major(&[1, 1], DataFormat::Float32), &[-1.0]).unwrap()
}

fn give(session: &Session, number: u32, fails: bool, from: &Tensor, to: &Tensor) {
    session.dispatch::<Give>(&(number, fails), &[Some(from), Some(to)], &[]).unwrap();
}

/// What is said of a tensor that is read: its number, or the error with its causes.
fn said(session: &Session, tensor: &Tensor) -> String {
    session.read(tensor).map_or_else(|error| with_causes(&error), |values| values[0].to_string())
}

fn with_causes(error: &OperationError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn failed(number: u32) -> String {
    format!(
        "read was not done: operation give failed: kernel giver on core (0, 0) was stopped: it gave \
         up with the number {number}"
    )
}

#[test]
fn each_of_several_faults_is_reported_its_own_operation() {
    let bench = Bench::new();
    let session = &bench.session;
    let (from, to) = (number(session), number(session));
    for round in 1..=4 {
        give(session, round, true, &from, &to);
        assert_eq!(said(session, &to), failed(round));
        assert_eq!(said(session, &to), failed(round), "it is still not there");
    }
    give(session, 5, false, &from, &to);
    assert_eq!(said(session, &to), "5");
    // The end tells what was first, once.
    let error = session.finish().unwrap_err();
    assert!(with_causes(&error).ends_with("the number 1"), "{error:?}");
    session.finish().unwrap();
}

#[test]
fn operations_on_other_tensors_run_as_ever() {
    let bench = Bench::new();
    let session = &bench.session;
    let [a, b, c, d] = [(); 4].map(|()| number(session));
    give(session, 1, true, &a, &b);
    give(session, 2, false, &c, &d);
    session.write(&c, &[3.0]).unwrap();
    assert_eq!(said(session, &d), "2");
    assert_eq!(said(session, &c), "3");
    assert_eq!(said(session, &b), failed(1));
}

#[test]
fn what_uses_a_tensor_that_is_not_there_is_not_run_and_says_whose_fault_it_is() {
    let bench = Bench::new();
    let session = &bench.session;
    let (from, to) = (number(session), number(session));
    give(session, 1, true, &from, &to);
    let sum = session.unary(Unary::Relu, &to, 0.0).unwrap();
    let expected = "read was not done: operation unary was not run, because it uses a buffer of \
                    one that failed: operation give failed: ";
    let first = said(session, &sum);
    assert!(first.starts_with(expected), "{first}");
    // It was reported, so what comes next runs; what was not run is still not there.
    give(session, 2, false, &from, &to);
    assert_eq!(said(session, &to), "2");
    assert!(said(session, &sum).starts_with(expected));
    let again = session.unary(Unary::Relu, &to, 0.0).unwrap();
    assert_eq!(said(session, &again), "2");
    // A tensor that is written is there.
    session.write(&sum, &[4.0]).unwrap();
    assert_eq!(said(session, &sum), "4");
}

#[test]
fn after_the_end_everything_can_be_used_again() {
    let bench = Bench::new();
    let session = &bench.session;
    let (from, to) = (number(session), number(session));
    give(session, 1, true, &from, &to);
    session.finish().unwrap_err();
    assert_eq!(said(session, &from), "-1");
    assert_eq!(said(session, &to), "-1");
    give(session, 2, false, &from, &to);
    assert_eq!(said(session, &to), "2");
    session.finish().unwrap();
}
