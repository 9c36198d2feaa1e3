//! What `cargo xtask dist` made, on systems that have nothing else: installed, used, upgraded and taken away.
//!
//! `cargo xtask dist && TELLTALE_LONG_TESTS=1 cargo test -p xtask packages:: -- --nocapture` as root on Debian. Systems are
//! made below target/trial, once.

mod archive;
mod booted;
mod debian;
mod first_screen;
mod foreign;
mod image;
mod library;
mod made;
mod reproduced;
mod rpm;
mod system;
mod wheel;
