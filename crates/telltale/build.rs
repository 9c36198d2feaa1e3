//! Has the linker lay the functions that `telltale serve` executes side by side, so that few pages of
//! the program are resident, where `TELLTALE_FUNCTION_ORDER` names a file that lists them. Such a list
//! is recorded of a program that was built without one (deploy/README.md, docs/decisions/0069-order-of-functions.md).
#![forbid(unsafe_code)]

use std::env;
use std::path::Path;

const ORDER: &str = "TELLTALE_FUNCTION_ORDER";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={ORDER}");
    let Some(order) = env::var_os(ORDER) else { return };
    println!("cargo::rerun-if-changed={}", Path::new(&order).display());
    match Path::new(&order).canonicalize() {
        // Names that another compiler or other versions of dependencies give are passed over.
        Ok(order) => {
            let list = format!("--symbol-ordering-file={}", order.display());
            for argument in [&list, "--no-warn-symbol-ordering"] {
                println!("cargo::rustc-link-arg-bins=-Xlinker");
                println!("cargo::rustc-link-arg-bins={argument}");
            }
        }
        Err(error) => {
            let order = Path::new(&order).display();
            println!("cargo::error={ORDER} is {order}, which cannot be read: {error}");
        }
    }
}
