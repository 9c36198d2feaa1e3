#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod client;
mod connector;
pub mod diagnosis;
mod error;
mod health;
mod socket;
mod tls;
mod way;

pub use address::{AddressError, ServiceAddress};
pub use client::{Client, Updates};
pub use connector::{Connector, connect, connect_here};
pub use error::{CallError, ConnectError};
pub use health::{Health, HealthError};
pub use socket::{stranger, usual_sockets};
pub use telltale_schema as schema;
pub use telltale_wire::call::TokenTextError;
pub use telltale_wire::telemetry::decode::{AnswerError, SnapshotAnswer, Update};
pub use telltale_wire::telemetry::message;
pub use tls::Tls;
