//! Gives the shared library the name under which programs search for it, one for each incompatible
//! version of the ABI, and keeps it loaded: its thread and its hooks for fork and exit would
//! otherwise run code that `dlclose` has taken away.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtelltale.so.0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
