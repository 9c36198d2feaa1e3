//! Gives the shared library the name under which NCCL searches for it, and keeps it loaded: NCCL closes
//! a plugin with its last communicator, and the library's thread may still be sending.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnccl-profiler-telltale.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
