//! The gRPC service at its sockets: what each caller gets, and what it does to those who misbehave.

mod alerts;
mod calling;
mod document;
mod filtering;
mod history;
mod hostile;
mod machine;
mod python;
mod renewal;
mod serving;
mod tls;
mod users;
mod watching;
