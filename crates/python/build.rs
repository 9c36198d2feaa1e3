//! Links the module with the unwinder that the interpreter's threads use.
//!
//! Until 3.14, CPython ends daemon threads at its exit by `pthread_exit`, which unwinds them by `libgcc_s`. They may be
//! in this module then, and another unwinder in it, as zig links one, does not know what it is given.

fn main() {
    println!("cargo:rerun-if-env-changed=TELLTALE_UNWINDER_DIRECTORY");
    // Of a release: a directory with the names of what the library has, for whichever system it is.
    if let Some(directory) = std::env::var_os("TELLTALE_UNWINDER_DIRECTORY") {
        println!("cargo:rustc-link-search=native={}", directory.display());
    }
    // By its whole name, which is before the standard library's own `-lgcc_s`.
    println!("cargo:rustc-link-lib=dylib:+verbatim=libgcc_s.so.1");
}
