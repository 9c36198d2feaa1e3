//! Gives the shared library the name under which programs look for it: one for each incompatible
//! version of the ABI.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtelltale.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
