//! C and C++ sources, compiled by the system's compiler.
//!
//! Warnings are errors: a header that only compiles with warnings is a broken header.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the C file `source` to the program or library `out` with `$CC`, else `cc`.
///
/// `flags` follow the source, so libraries (`-l…`) may be among them; `-std`, `-shared` and the
/// like as well. Returns `out`.
///
/// # Panics
/// With the compiler's output when it fails, or when there is no compiler.
#[track_caller]
pub fn compile_c(source: &Path, out: &Path, flags: &[&str]) -> PathBuf {
    compile("CC", "cc", source, out, flags)
}

/// Compiles the C++ file `source` to `out` with `$CXX`, else `c++`; otherwise as [`compile_c`].
///
/// # Panics
/// As [`compile_c`].
#[track_caller]
pub fn compile_cpp(source: &Path, out: &Path, flags: &[&str]) -> PathBuf {
    compile("CXX", "c++", source, out, flags)
}

#[track_caller]
fn compile(variable: &str, default: &str, source: &Path, out: &Path, flags: &[&str]) -> PathBuf {
    // `CC="ccache gcc"` is common, so the variable is words, not one path.
    let chosen = std::env::var(variable).unwrap_or_default();
    let mut words = chosen.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(default));
    command.args(words).args(["-Wall", "-Wextra", "-Werror"]);
    command.arg(source).arg("-o").arg(out).args(flags);
    match command.output() {
        Ok(output) if output.status.success() => out.to_path_buf(),
        Ok(output) => panic!(
            "{command:?} failed ({}):\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => {
            panic!("cannot run {command:?}: {error}; install a compiler or set {variable}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn a_compiled_program_runs() {
        let scratch = Scratch::new();
        let c = scratch.join("seven.c");
        std::fs::write(&c, "int main(void) { return SEVEN; }\n").unwrap();
        let program = compile_c(&c, &scratch.join("seven"), &["-DSEVEN=7"]);
        assert_eq!(Command::new(program).status().unwrap().code(), Some(7));
        let cpp = scratch.join("eight.cpp");
        std::fs::write(&cpp, "int main() { auto eight = 8; return eight; }\n").unwrap();
        let program = compile_cpp(&cpp, &scratch.join("eight"), &[]);
        assert_eq!(Command::new(program).status().unwrap().code(), Some(8));
    }

    #[test]
    #[should_panic(expected = "unused")]
    fn a_warning_is_an_error() {
        let scratch = Scratch::new();
        let source = scratch.join("bad.c");
        std::fs::write(&source, "int main(void) { int unused; return 0; }\n").unwrap();
        compile_c(&source, &scratch.join("bad"), &[]);
    }
}
