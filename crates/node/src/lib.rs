//! The node service: it collects periodically, keeps what it saw, and answers by gRPC, HTTP, OTLP and the page.
#![forbid(unsafe_code)]

pub mod access;
pub mod alerts;
mod certificates;
pub mod configuration;
pub mod grpc;
pub mod history;
pub mod http;
pub mod kubelet;
pub mod legacy;
pub mod otlp;
mod page;
pub mod parts;
pub mod samples;
pub mod service;
