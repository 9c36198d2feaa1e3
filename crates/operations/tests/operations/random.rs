//! Random sequences of operations that depend on nothing but their seed, and what they leave.

use telltale_operations::{
    AdamW, AdamWState, Binary, MatmulAttributes, OperationError, Reduction, Session,
    SoftmaxAttributes, Tensor, Unary, row_major,
};
use telltale_program_cache::DataFormat;

use crate::operations::bench::FORMS;

/// Tensors that a sequence has at once; a new one takes the place of another, whose buffer is
/// freed and used again.
const SLOTS: u64 = 6;
/// Sizes of dimensions: few, so that programs are found again, and around the size of a tile.
const SIZES: [u32; 6] = [1, 3, 16, 32, 33, 70];
/// Elements of a tensor that is repeated, at most.
const LARGEST_REPEATED: u32 = 10_000;

/// Plays `steps` random operations and gives the bytes of all that is left, and the number of
/// operations that were possible.
pub(crate) fn play(session: &Session, seed: u64, steps: u32) -> (Vec<Vec<u8>>, u32) {
    let mut random = Random(seed);
    let mut slots: Vec<Tensor> = (0..SLOTS).map(|_| fresh(session, &mut random)).collect();
    let mut done = 0;
    for step in 0..steps {
        let result = match random.below(12) {
            0 => Ok(Some(fresh(session, &mut random))),
            _ => operation(session, &mut random, &slots),
        };
        match result {
            Ok(Some(tensor)) => {
                let slot = random.below(SLOTS) as usize;
                slots[slot] = tensor;
                done += 1;
            }
            Ok(None) => done += 1,
            Err(OperationError::Refused(_)) => {}
            Err(error) => panic!("step {step} of seed {seed}: {error:?}"),
        }
    }
    let bytes = slots.iter().map(|tensor| session.read_bytes(tensor).unwrap());
    (bytes.collect(), done)
}

/// A new tensor, or none where one was changed in place.
fn operation(
    session: &Session,
    random: &mut Random,
    slots: &[Tensor],
) -> Result<Option<Tensor>, OperationError> {
    let x = random.of(slots);
    // As likely the same tensor twice as any two.
    let y = if random.below(3) == 0 { x } else { random.of(slots) };
    let scalar = random.below(8) as f32 / 4.0 - 1.0;
    let unary = [Unary::Negate, Unary::Relu, Unary::Gelu, Unary::Tanh, Unary::Scale, Unary::Shift];
    let binary = [Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Maximum];
    let result = match random.below(18) {
        0 => session.unary(*random.of(&unary), x, scalar)?,
        1 => {
            session.unary_into(*random.of(&unary), x, scalar, x)?;
            return Ok(None);
        }
        2 | 3 => session.binary(*random.of(&binary), x, y)?,
        4 => {
            session.binary_into(*random.of(&binary), x, y, x)?;
            return Ok(None);
        }
        5 | 6 => {
            let attributes = MatmulAttributes {
                a_transposed: random.below(2) == 0,
                b_transposed: random.below(2) == 0,
                ..MatmulAttributes::default()
            };
            let product = session.matmul(attributes, x, y, None)?;
            session.unary(Unary::Tanh, &product, 0.0)?
        }
        7 => {
            let attributes = SoftmaxAttributes { causal: random.below(2) == 0 };
            session.softmax(attributes, x, scalar)?
        }
        8 => {
            let dimension = random.below(3) as u32;
            session.reduce(*random.of(&[Reduction::Mean, Reduction::Maximum]), x, dimension)?
        }
        9 => session.transpose(x)?,
        10 => {
            let orders: [&[usize]; 4] = [&[1, 0, 2], &[2, 0, 1], &[0, 2, 1], &[1, 0]];
            session.permute(x, random.of::<&[usize]>(&orders))?
        }
        11 => {
            let starts: Vec<u32> = x.shape().iter().map(|size| size / 3).collect();
            session.slice(x, &starts, x.shape())?
        }
        12 => layer_norm(session, random, x)?,
        13 => embedding(session, random, x)?,
        14 => cross_entropy(session, random, x)?,
        15 => {
            adamw(session, random, x, y)?;
            return Ok(None);
        }
        16 => return repeat(session, random, x),
        _ => return concat(session, random, x, y),
    };
    Ok(Some(result))
}

/// The tensor once or twice along each dimension, if it is not large already.
fn repeat(
    session: &Session,
    random: &mut Random,
    x: &Tensor,
) -> Result<Option<Tensor>, OperationError> {
    let counts: Vec<u32> = x.shape().iter().map(|_| 1 + random.below(2) as u32).collect();
    if x.shape().iter().product::<u32>() > LARGEST_REPEATED {
        return Ok(None);
    }
    session.repeat(x, &counts).map(Some)
}

/// Two tensors in one, if they are not long already.
fn concat(
    session: &Session,
    random: &mut Random,
    x: &Tensor,
    y: &Tensor,
) -> Result<Option<Tensor>, OperationError> {
    let size = x.shape().iter().copied().max().unwrap_or(1);
    if size > SIZES[SIZES.len() - 1] {
        return Ok(None);
    }
    session.concat(&[x, y], random.below(3) as u32).map(Some)
}

/// A layer norm's gradient for its input, with parameters of the same row.
fn layer_norm(
    session: &Session,
    random: &mut Random,
    x: &Tensor,
) -> Result<Tensor, OperationError> {
    let columns = x.shape().last().copied().unwrap_or(1);
    let spec = random.of(&FORMS).spec(&[columns]);
    let gamma = session.tensor(&spec, &vec![0.5; columns as usize])?;
    let forward = session.layer_norm(x, &gamma, &gamma, 1e-5)?;
    let gradients = session.layer_norm_backward(x, &gamma, &forward, &forward.y)?;
    session.binary(Binary::Add, &gradients.x, &gradients.gamma)
}

/// Rows of a table by number, and the gradient for the table from them.
fn embedding(
    session: &Session,
    random: &mut Random,
    table: &Tensor,
) -> Result<Tensor, OperationError> {
    let rows = table.shape()[0];
    let count = *random.of(&SIZES);
    let tokens = indices(session, random, count, rows)?;
    let found = session.embedding(&tokens, table)?;
    session.embedding_backward(&tokens, &found, rows)
}

/// The gradient of the loss for logits, moved by the loss itself.
fn cross_entropy(
    session: &Session,
    random: &mut Random,
    logits: &Tensor,
) -> Result<Tensor, OperationError> {
    let &[rows, classes] = logits.shape() else { return session.zeros(logits.spec()) };
    let targets = indices(session, random, rows, classes)?;
    let loss = session.cross_entropy(logits, &targets)?;
    let slope = random.below(4) as f32;
    let gradient = session.cross_entropy_backward(logits, &targets, slope)?;
    session.binary(Binary::Add, &gradient, &loss)
}

/// A few steps of the optimiser with moments of its own; `gradient` may be the parameter itself.
fn adamw(
    session: &Session,
    random: &mut Random,
    parameter: &Tensor,
    gradient: &Tensor,
) -> Result<(), OperationError> {
    let (first, second) = (session.zeros(parameter.spec())?, session.zeros(parameter.spec())?);
    let state = AdamWState { parameter, first: &first, second: &second };
    for step in 1..=2 {
        let learning_rate = random.below(4) as f32 / 8.0;
        session.adamw(&AdamW { learning_rate, ..AdamW::default() }, step, state, gradient)?;
    }
    Ok(())
}

fn indices(
    session: &Session,
    random: &mut Random,
    count: u32,
    limit: u32,
) -> Result<Tensor, OperationError> {
    let values: Vec<u32> = (0..count).map(|_| random.below(limit.into()) as u32).collect();
    session.indices(&row_major(&[count], DataFormat::UInt32), &values)
}

fn fresh(session: &Session, random: &mut Random) -> Tensor {
    let form = *random.of(&FORMS);
    let rank = 2 + random.below(2);
    let shape: Vec<u32> = (0..rank).map(|_| *random.of(&SIZES)).collect();
    let count: u32 = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|_| random.below(4_096) as f32 / 1_024.0 - 2.0).collect();
    session.tensor(&form.spec(&shape), &values).unwrap()
}

/// Numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}
