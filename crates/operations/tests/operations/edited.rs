//! A kernel whose file, or a file that it includes, is edited is recompiled: in a running process
//! whatever the program cache's mode, and in the next process.

use std::fs;

use crate::operations::kernel_process::Kernels;

const MODES: [&str; 3] = ["on", "off", "check"];

#[test]
fn an_edited_kernel_file_is_compiled_again_in_every_mode() {
    let kernels = Kernels::new();
    for mode in MODES {
        let mut process = kernels.start(mode);
        for value in ["31", "32", "32", "31"] {
            kernels.write_value("kernel.c", "", value);
            assert_eq!(process.run("kernel.c"), value, "mode {mode}");
            assert_eq!(process.run("kernel.c"), value, "mode {mode}, again");
        }
        process.ends_well();
    }
}

#[test]
fn an_edited_header_is_compiled_again_in_every_mode() {
    let kernels = Kernels::new();
    kernels.write_value("kernel.c", "#include \"outer.h\"", "OUTER");
    kernels.write("outer.h", "#include \"inner/value.h\"\n#define OUTER (VALUE + 1)\n");
    for mode in MODES {
        let mut process = kernels.start(mode);
        for value in [60, 70, 70, 60] {
            kernels.write("inner/value.h", &format!("#define VALUE {value}\n"));
            assert_eq!(process.run("kernel.c"), (value + 1).to_string(), "mode {mode}");
        }
        process.ends_well();
    }
}

#[test]
fn an_edited_header_is_compiled_again_by_the_next_process() {
    let kernels = Kernels::new();
    for named in ["value.h".into(), kernels.path("value.h")] {
        kernels.write_value("kernel.c", &format!("#include {named:?}"), "VALUE");
        for value in ["60", "70", "60", "80"] {
            kernels.write("value.h", &format!("#define VALUE {value}\n"));
            assert_eq!(kernels.run_once("kernel.c"), value, "included as {named:?}");
        }
    }
}

#[test]
fn a_header_that_appears_earlier_on_the_search_path_is_used() {
    let kernels = Kernels::new();
    // Includes are searched for beside the including file, then at the root of kernels.
    kernels.write_value("deep/kernel.c", "#include \"value.h\"", "VALUE");
    kernels.write("value.h", "#define VALUE 1\n");
    for mode in MODES {
        let mut process = kernels.start(mode);
        assert_eq!(process.run("deep/kernel.c"), "1", "mode {mode}");
        kernels.write("deep/value.h", "#define VALUE 2\n");
        assert_eq!(process.run("deep/kernel.c"), "2", "mode {mode}");
        assert_eq!(kernels.run_once("deep/kernel.c"), "2");
        fs::remove_file(kernels.path("deep/value.h")).unwrap();
        assert_eq!(process.run("deep/kernel.c"), "1", "mode {mode}");
        assert_eq!(kernels.run_once("deep/kernel.c"), "1");
        process.ends_well();
    }
}

#[test]
fn a_kernel_that_asks_whether_a_header_is_there_notices_it() {
    let kernels = Kernels::new();
    let asks = "#if __has_include(\"option.h\")\n#define VALUE 2\n#else\n#define VALUE 1\n#endif";
    kernels.write_value("kernel.c", asks, "VALUE");
    let mut process = kernels.start("on");
    assert_eq!(process.run("kernel.c"), "1");
    kernels.write("option.h", "");
    assert_eq!(process.run("kernel.c"), "2");
    assert_eq!(kernels.run_once("kernel.c"), "2");
    process.ends_well();
}

#[test]
fn a_file_that_is_broken_or_gone_is_an_error_until_it_is_mended() {
    let kernels = Kernels::new();
    kernels.write_value("kernel.c", "#include \"value.h\"", "VALUE");
    let mut process = kernels.start("check");
    for round in ["1", "2"] {
        kernels.write("value.h", &format!("#define VALUE {round}\n"));
        assert_eq!(process.run("kernel.c"), round);
        kernels.write("value.h", "#define VALUE nothing\n");
        let said = process.run("kernel.c");
        assert!(said.contains("the C compiler refuses its source"), "{said}");
        assert!(said.contains("nothing"), "{said}");
        fs::remove_file(kernels.path("value.h")).unwrap();
        let said = process.run("kernel.c");
        assert!(said.contains("value.h: No such file"), "{said}");
    }
    fs::remove_file(kernels.path("kernel.c")).unwrap();
    let said = process.run("kernel.c");
    assert!(said.contains("cannot read its source"), "{said}");
    process.ends_well();
}

#[test]
fn another_compiler_and_other_flags_make_another_kernel() {
    let kernels = Kernels::new();
    kernels.write_value("kernel.c", "", "FLAG");
    for (compiler, value) in [("cc -DFLAG=1", "1"), ("cc -DFLAG=2", "2"), ("cc -DFLAG=1", "1")] {
        let mut process = kernels.start_with("on", |command| {
            command.env("CC", compiler);
        });
        assert_eq!(process.run("kernel.c"), value);
        process.ends_well();
    }
}

#[test]
fn every_byte_of_a_file_counts_whether_it_is_text_or_not() {
    let kernels = Kernels::new();
    // Latin-1, as older headers have it: an e with an accent is one byte there.
    let value = "sizeof (MARK) * 1000 + (unsigned char)MARK[0]";
    kernels.write_value("kernel.c", "#include \"mark.h\"", value);
    for mode in MODES {
        let mut process = kernels.start(mode);
        for byte in [0xE9, 0xE8, 0xE8, 0xE9] {
            let header = [b"#define MARK \"", &[byte][..], b"\"\n"].concat();
            fs::write(kernels.path("mark.h"), header).unwrap();
            assert_eq!(process.run("kernel.c"), format!("{}", 2_000 + u32::from(byte)));
            let (before, after) = (b"#define MARK \"", b"\"\nKERNEL_MAIN { float value = ");
            let rest = format!("{value}; noc_write_bytes(get_arg_val(0), 0, 4, &value); }}");
            let whole = [before, &[byte][..], after, rest.as_bytes()].concat();
            fs::write(kernels.path("whole.c"), whole).unwrap();
            assert_eq!(process.run("whole.c"), format!("{}", 2_000 + u32::from(byte)));
        }
        process.ends_well();
    }
}

/// A file that the assembler puts in is in no text that the compiler shows.
#[test]
fn a_file_that_the_assembler_puts_in_is_read_at_each_dispatch() {
    let kernels = Kernels::new();
    let bytes = kernels.path("bytes.bin");
    let directives = kernels.path("directives.s");
    let includes = |directive: &str| {
        format!(
            "__asm__(\".pushsection .rodata\\n{directive}\\n.popsection\");\n\
             extern const char bytes[] __attribute__((visibility(\"hidden\")));\n\
             #define VALUE bytes[0]"
        )
    };
    fs::write(&directives, format!("bytes: .byte 0\n.INCBIN \"{}\"\n", bytes.display())).unwrap();
    let direct = includes(&format!("bytes: .incbin \\\"{}\\\"", bytes.display()));
    let by_a_file = includes(&format!(".include \\\"{}\\\"", directives.display()));
    kernels.write_value("direct.c", &direct, "VALUE");
    kernels.write_value("by_a_file.c", &by_a_file, "bytes[1]");
    kernels.write("header.h", &direct);
    kernels.write_value("by_a_header.c", "#include \"header.h\"", "VALUE");
    for file in ["direct.c", "by_a_file.c", "by_a_header.c"] {
        for mode in MODES {
            let mut process = kernels.start(mode);
            for value in [1, 2, 2, 1] {
                fs::write(&bytes, [value; 2]).unwrap();
                assert_eq!(process.run(file), value.to_string(), "{file}, mode {mode}");
            }
            process.ends_well();
            fs::write(&bytes, [3; 2]).unwrap();
            assert_eq!(kernels.run_once(file), "3", "{file}, the next process");
        }
    }
    let left = fs::read_dir(kernels.path("../cache")).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> =
        left.filter(|path| path.extension().is_some_and(|end| end == "so")).collect();
    assert!(left.is_empty(), "none of them is kept: {left:?}");
}

#[test]
fn an_edited_header_that_the_compilers_options_or_variables_name_is_compiled_again() {
    let kernels = Kernels::new();
    let directory = kernels.path("library");
    kernels.write("library/value.h", "");
    let header = kernels.path("library/value.h");
    let named = directory.display();
    kernels.write_value("includes.c", "#include <value.h>", "VALUE");
    kernels.write_value("plain.c", "", "VALUE");
    for (variable, value, file, modes) in [
        ("CC", format!("cc -isystem {named}"), "includes.c", &MODES[..]),
        ("CC", format!("cc -I{named}"), "includes.c", &MODES[..1]),
        ("CC", format!("cc -P -I{named}"), "includes.c", &MODES[2..]),
        ("CC", format!("cc -idirafter {named}"), "includes.c", &MODES[1..2]),
        ("CC", format!("cc -include {}", header.display()), "plain.c", &MODES[..]),
        ("CC", format!("cc -imacros {}", header.display()), "plain.c", &MODES[..1]),
        ("C_INCLUDE_PATH", named.to_string(), "includes.c", &MODES[..1]),
        ("CPATH", named.to_string(), "includes.c", &MODES[2..]),
    ] {
        for mode in modes {
            let start = || {
                kernels.start_with(mode, |command| {
                    command.env(variable, &value);
                })
            };
            let mut process = start();
            for number in ["1", "2", "2", "1"] {
                fs::write(&header, format!("#define VALUE {number}\n")).unwrap();
                assert_eq!(process.run(file), number, "{variable}={value}, mode {mode}");
            }
            process.ends_well();
            fs::write(&header, "#define VALUE 3\n").unwrap();
            let mut process = start();
            assert_eq!(process.run(file), "3", "{variable}={value}, the next process");
            process.ends_well();
        }
    }
}

#[test]
fn an_edited_header_of_the_system_that_an_option_puts_before_it_is_compiled_again() {
    let kernels = Kernels::new();
    // The kernel API includes it.
    let write = |value: &str| {
        let text = format!("#include_next <math.h>\n#define VALUE {value}\n");
        kernels.write("library/math.h", &text);
    };
    write("1");
    kernels.write_value("kernel.c", "", "VALUE");
    let command = format!("cc -isystem {}", kernels.path("library").display());
    let mut process = kernels.start_with("on", |process| {
        process.env("CC", command);
    });
    for value in ["1", "2", "1"] {
        write(value);
        assert_eq!(process.run("kernel.c"), value);
    }
    process.ends_well();
}

#[test]
fn a_header_whose_name_is_a_macro_is_searched_for_at_each_dispatch() {
    let kernels = Kernels::new();
    let named = "#define HEADER \"value.h\"\n#include HEADER";
    let made =
        "#define TEXT(name) #name\n#define HEADER(name) TEXT(name.h)\n # include HEADER(value)";
    kernels.write("outer.h", &format!("/* first */ {made}\n"));
    for (name, before) in
        [("named", named), ("made", made), ("in_a_header", "#include \"outer.h\"")]
    {
        let file = format!("deep/{name}.c");
        kernels.write_value(&file, before, "VALUE");
        kernels.write("value.h", "#define VALUE 1\n");
        for mode in MODES {
            let mut process = kernels.start(mode);
            assert_eq!(process.run(&file), "1", "{name}, mode {mode}");
            // In a header, "beside it" is beside the header.
            let nearer = if name == "in_a_header" { "value.h" } else { "deep/value.h" };
            kernels.write(nearer, "#define VALUE 2\n");
            assert_eq!(process.run(&file), "2", "{name}, mode {mode}");
            kernels.write("value.h", "#define VALUE 1\n");
            let _ = fs::remove_file(kernels.path("deep/value.h"));
            assert_eq!(process.run(&file), "1", "{name}, mode {mode}");
            process.ends_well();
        }
    }
}
