//! What every program of ours that listens needs, whatever it serves: addresses and sockets, files
//! of bounded length or with secrets, tokens, certificates, the names that a port answers to, the door by
//! which connections come in, and its log lines on stderr.
//!
//! Nothing here knows what is served, or decides who may see it.
#![forbid(unsafe_code)]

pub mod bounded_file;
pub mod door;
pub mod hosts;
pub mod listen;
pub mod log;
pub mod peer_user;
pub mod problem;
pub mod secret_file;
pub mod sock_diag;
pub mod tls;
pub mod token;
