//! How a kernel calculates is its own: what one kernel sets, or leaves in the processor when it
//! fails, changes no result of another.
#![cfg(target_arch = "x86_64")]

use crate::operations::kernel_process::Kernels;

/// Makes a division by zero trap: `feenableexcept(FE_DIVBYZERO)`.
const TRAP: &str = "extern int feenableexcept(int); feenableexcept(4);";
/// Rounds to zero: `fesetround(FE_TOWARDZERO)`.
const TO_ZERO: &str = "extern int fesetround(int); fesetround(0xc00);";
/// Numbers below the smallest normal one become zero, as `_MM_SET_FLUSH_ZERO_MODE` and such do.
const FLUSH: &str = "unsigned mode; __asm__ volatile(\"stmxcsr %0\" : \"=m\"(mode)); \
    mode |= 0x8040; __asm__ volatile(\"ldmxcsr %0\" :: \"m\"(mode));";
/// All eight registers of the old floating-point unit, as a long calculation may have them.
const FULL: &str = "for (int i = 0; i < 8; i++) __asm__ volatile(\"fld1\");";

/// Statements, then `value = EXPRESSION`, whose operands the compiler does not know.
fn write(kernels: &Kernels, name: &str, statements: &str, expression: &str) -> String {
    let file = format!("{name}.c");
    let text = format!(
        "KERNEL_MAIN {{
  volatile float zero = 0, one = 1;
  {statements}
  volatile float value = {expression};
  float given = value;
  noc_write_bytes(get_arg_val(0), 0, 4, &given);
}}"
    );
    kernels.write(&file, &text);
    file
}

/// Kernels that are right, and what their number is.
fn innocent(kernels: &Kernels) -> Vec<(String, &'static str)> {
    vec![
        (write(kernels, "infinite", "", "one / zero"), "inf"),
        (write(kernels, "third", "", "one / 3"), "0.33333334"),
        (write(kernels, "tiny", "", "one * 1e-38f / 8 > 0"), "1"),
        (write(kernels, "long", "", "((long double)one + 0.5L) * ((long double)one + 1)"), "3"),
        (write(kernels, "long_third", "", "(float)((long double)one / 3)"), "0.33333334"),
    ]
}

#[test]
fn what_a_stopped_kernel_has_set_is_not_the_next_ones() {
    let kernels = Kernels::new();
    let innocent = innocent(&kernels);
    let mut process = kernels.start("on");
    let null = "*(volatile float *)0 = 1;";
    for (name, body, expected) in [
        ("trap", format!("{TRAP} zero = one / zero;"), "what raises a floating-point exception"),
        (
            "old_trap",
            format!("{TRAP} zero = (long double)one / zero;"),
            "a floating-point exception",
        ),
        ("trap_null", format!("{TRAP} {null}"), "at a null pointer"),
        ("to_zero", format!("{TO_ZERO} {null}"), "at a null pointer"),
        ("flush", format!("{FLUSH} {null}"), "at a null pointer"),
        ("full", format!("{FULL} {null}"), "at a null pointer"),
        ("refused", format!("{TRAP} {TO_ZERO} kernel_fail(7);"), "the number 7"),
    ] {
        let said = process.run(&write(&kernels, name, &body, "one"));
        assert!(said.contains(expected), "{name}: {said}");
        for (file, number) in &innocent {
            assert_eq!(process.run(file), *number, "{file} after {name}");
        }
    }
    process.ends_well();
}

#[test]
fn what_a_kernel_sets_that_ends_well_is_not_the_next_ones() {
    let kernels = Kernels::new();
    let innocent = innocent(&kernels);
    let mut process = kernels.start("on");
    for (name, statements) in [("trap", TRAP), ("to_zero", TO_ZERO), ("flush", FLUSH)] {
        assert_eq!(process.run(&write(&kernels, name, statements, "one")), "1");
        for (file, number) in &innocent {
            assert_eq!(process.run(file), *number, "{file} after {name}");
        }
    }
    process.ends_well();
}
