//! Gives the shared library the name under which programs search for it, and keeps it loaded: its hook
//! for fork would otherwise run code that `dlclose` has taken away.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtelltale_nrt.so.0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
