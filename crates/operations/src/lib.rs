//! Tensors and the operations of a GPT, forward and backward, on the software accelerator, through
//! the program cache.
//!
//! An operation is a method of [`Session`]. It checks its operands, allocates its result, and
//! dispatches an [`Operation`](telltale_program_cache::Operation): attributes and operands'
//! specifications make the key and the program; addresses and values that change from dispatch to
//! dispatch are written into it each time. The kernels are C sources in `kernels/`.
//!
//! Nothing here knows how programs are compiled or kept, and no factory sees an address.
//!
//! # What is taken
//! Numbers are Float32 or BFloat16 (computed in Float32, rounded when written), in row-major order
//! or in tiles of 32 rows and columns, in up to four dimensions; operands of one operation may
//! differ in both. Tokens and targets are row-major UInt32. What an operation does not take is
//! refused with an error that names the operation and the operand.
#![forbid(unsafe_code)]

mod adamw;
pub mod bfloat;
mod blocks;
mod collapse;
mod concat;
mod cross_entropy;
mod elementwise;
mod embedding;
mod error;
mod extents;
mod hand_written;
mod layer_norm;
mod matmul;
mod memory_order;
mod movement;
mod print;
mod program;
mod reduce;
mod rows;
mod session;
mod softmax;
mod tensor;

pub use adamw::{AdamW, AdamWAttributes, AdamWOperation, AdamWState};
pub use concat::{ConcatAttributes, ConcatOperation, MAX_CONCAT};
pub use cross_entropy::{CrossEntropyAttributes, CrossEntropyOperation};
pub use elementwise::{
    Binary, BinaryAttributes, BinaryOperation, Unary, UnaryAttributes, UnaryOperation,
};
pub use embedding::{EmbeddingAttributes, EmbeddingBackwardOperation, EmbeddingOperation};
pub use error::{MAX_ELEMENTS, OperandRefusal};
pub use extents::MAX_RANK;
pub use hand_written::{HandWrittenBinary, HandWrittenMatmul, HandWrittenSoftmax};
pub use layer_norm::{
    LayerNorm, LayerNormAttributes, LayerNormBackwardOperation, LayerNormGradients,
    LayerNormOperation, LayerNormParametersOperation,
};
pub use matmul::{MatmulAttributes, MatmulFactory, MatmulOperation};
pub use memory_order::{TILE, page_bytes};
pub use movement::{MoveAttributes, MoveOperation};
pub use print::{MAX_PRINTED_BYTES, PRINTING_CORE, PrintAttributes, PrintOperation};
pub use reduce::{ReduceAttributes, ReduceOperation, Reduction};
pub use session::{OperationError, Session, Style};
pub use softmax::{SoftmaxAttributes, SoftmaxBackwardOperation, SoftmaxOperation};
pub use tensor::{Tensor, row_major, tiled};

/// The Rust of these pages is compiled and run here, since packages of the crates that they are about have
/// no pages in them.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/integrate.md")]
#[doc = include_str!("../../../docs/program-cache.md")]
#[doc = include_str!("../../../docs/quickstart.md")]
#[doc = include_str!("../../program-key-derive/README.md")]
struct Pages;
