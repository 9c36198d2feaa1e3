//! Programs that use the library as it is meant to be used, and as it is not.

use std::path::Path;
use std::process::Command;

use crate::c_programs::installed::{install, program, program_with};
use telltale_harness::{Scratch, compile_cpp, skip};

/// Runs a program to its end with these variables and no others of the library; returns what it
/// wrote.
fn run(program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> [String; 2] {
    let mut command = Command::new(program);
    for name in [
        "NEURON_RT_VISIBLE_CORES",
        "NEURON_RT_NUM_CORES",
        "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE",
        "TELLTALE_DEBUG_STREAM_BYTES",
    ] {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied());
    let output = command.output().expect("what was just built can be started");
    let [written, reported] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{program:?} {arguments:?} {variables:?}: {reported}");
    [written, reported]
}

const SIZE: &str = "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE";
const TWO_CORES: (&str, &str) = ("NEURON_RT_VISIBLE_CORES", "3,4");

#[test]
fn every_published_sentence_holds_at_each_size_of_the_buffer() {
    let scratch = Scratch::new();
    let conformance = program("conformance.c", &install(&scratch));
    for (variables, events, reported) in [
        (&[TWO_CORES][..], "65536", ""),
        (&[TWO_CORES, (SIZE, "4")], "4", ""),
        (&[TWO_CORES, (SIZE, "1000")], "1000", ""),
        (
            &[TWO_CORES, (SIZE, "64K")],
            "65536",
            "telltale: NEURON_RT_DEBUG_STREAM_BUFFER_SIZE is \"64K\", which is not a positive \
             whole number; 65536 is used instead\n",
        ),
    ] {
        let [_, message] = run(&conformance, &[events], variables);
        assert_eq!(message, reported, "{variables:?}");
    }
}

/// The header checks the library's data, which a program finds in one of several ways: by its own
/// copy, or by the address that the loader fills in.
#[test]
fn the_header_finds_who_reads_however_a_program_is_linked() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    for flags in [
        &["-O2", "-fno-pie", "-no-pie", "-std=gnu99", "-pedantic"][..],
        &["-O2", "-fPIC", "-pie", "-Wl,-z,now"],
        &["-O2", "-fno-plt", "-flto"],
        &["-DTELLTALE_DEBUG_NO_INLINE"],
    ] {
        for (source, arguments) in [("conformance.c", &["30000"][..]), ("misuse.c", &[])] {
            let program = program_with(source, &prefix, flags);
            let [_, reported] = run(&program, arguments, &[TWO_CORES, (SIZE, "30000")]);
            assert_eq!(reported, "", "{flags:?}");
        }
    }
}

#[test]
fn misuse_ends_with_a_status_and_touches_nobodys_files() {
    let scratch = Scratch::new();
    let misuse = program("misuse.c", &install(&scratch));
    let [_, reported] = run(&misuse, &[], &[("NEURON_RT_NUM_CORES", "2")]);
    assert_eq!(reported, "");
}

#[test]
fn a_consumer_in_cpp_gets_every_event_of_every_core_in_order() {
    let scratch = Scratch::new();
    let consumer = program("consumer.cpp", &install(&scratch));
    let [written, _] = run(&consumer, &["5000"], &[("NEURON_RT_NUM_CORES", "3")]);
    assert_eq!(written, "5000\n5000\n5000\n");
}

#[test]
fn pkg_config_reports_how_to_compile() {
    let scratch = Scratch::new();
    let prefix = install(&scratch);
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let Ok(output) = command.args(["--cflags", "--libs", "telltale-nrt"]).output() else {
        return skip("nrt::pkg_config_reports_how_to_compile", "needs pkg-config");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let flags = String::from_utf8(output.stdout).unwrap();
    let rpath = format!("-Wl,-rpath,{}", prefix.join("lib").display());
    let flags: Vec<&str> = flags.split_whitespace().chain([rpath.as_str(), "-pthread"]).collect();
    let source = crate::c_programs::installed::here().join("tests/c/consumer.cpp");
    let consumer = compile_cpp(&source, &scratch.join("consumer"), &flags);
    assert_eq!(run(&consumer, &["1"], &[])[0], "1\n");
}

/// Valgrind shows a process another table of system values than the kernel's, which a library that
/// asks the kernel itself takes for its own and crashes on.
#[test]
fn a_consumer_runs_under_valgrind_and_is_found_clean() {
    let scratch = Scratch::new();
    let consumer = program("consumer.cpp", &install(&scratch));
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=9", "--leak-check=full"]).arg(consumer).arg("50");
    let Ok(output) = command.env("NEURON_RT_NUM_CORES", "2").output() else {
        return skip("nrt::a_consumer_runs_under_valgrind_and_is_found_clean", "needs valgrind");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "50\n50\n");
}
