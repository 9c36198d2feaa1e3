//! The layout as a C compiler makes it, and what can be a request.

use std::process::Command;

use proptest::prelude::*;
use telltale_harness::{Scratch, compile_c};
use telltale_schema::memory::MemoryKind;

use super::{
    ARCHITECTURE, BUFFER, BUFFER_TYPE, CB, DEVICE, DEVICES, DRAM, DRAM_CHANNELS, DRAM_PER_CHANNEL,
    Field, IS_AVAILABLE, KERNEL, L1, L1_PER_CORE, L1_SMALL, LegacyAnswer, MessageForm, PROCESS,
    RING_TOTAL, RING_USED, Request, SIZE, TOTAL_DRAM, TOTAL_L1, TRACE, TYPE, Verb,
};

static FIELDS: [&Field; 22] = [
    &TYPE,
    &DEVICE,
    &SIZE,
    &BUFFER_TYPE,
    &PROCESS,
    &BUFFER,
    &DRAM,
    &L1,
    &L1_SMALL,
    &TRACE,
    &CB,
    &KERNEL,
    &TOTAL_DRAM,
    &TOTAL_L1,
    &ARCHITECTURE,
    &DRAM_CHANNELS,
    &DRAM_PER_CHANNEL,
    &L1_PER_CORE,
    &IS_AVAILABLE,
    &DEVICES,
    &RING_TOTAL,
    &RING_USED,
];

/// A program that prints the offset and the size of each field, and the size of all.
fn program(form: MessageForm) -> String {
    let mut print = String::new();
    for field in FIELDS.iter().filter(|field| field.range(form).is_some()) {
        let name = field.name;
        print += &format!(
            "printf(\"{name} %zu %zu\\n\", offsetof(struct message, {name}), \
             sizeof(((struct message *)0)->{name}));\n"
        );
    }
    format!(
        "#define FORM {}\n#include <stddef.h>\n#include <stdio.h>\n#include \"{}/tests/legacy/message.h\"\n\
         int main(void) {{ {print} printf(\"all 0 %zu\\n\", sizeof(struct message)); return 0; }}\n",
        form.bytes(),
        env!("CARGO_MANIFEST_DIR"),
    )
}

#[test]
fn fields_are_where_a_c_compiler_puts_them() {
    let place = Scratch::new();
    for form in MessageForm::ALL {
        let source = place.join("layout.c");
        std::fs::write(&source, program(form)).unwrap();
        let program = compile_c(&source, &place.join("layout"), &[]);
        let said = Command::new(program).output().unwrap().stdout;
        let fields = FIELDS.iter().filter_map(|field| {
            Some(format!("{} {} {}\n", field.name, field.range(form)?.start, field.bytes))
        });
        let expected: String = fields.chain([format!("all 0 {}\n", form.bytes())]).collect();
        assert_eq!(String::from_utf8(said).unwrap(), expected, "{form:?}");
    }
}

fn message(code: u8, form: MessageForm) -> Vec<u8> {
    LegacyAnswer { code, device: 3, fields: vec![(&BUFFER_TYPE, 2), (&SIZE, 70), (&BUFFER, 9)] }
        .encode(form)
}

#[test]
fn requests_are_read_and_answers_are_none() {
    for form in MessageForm::ALL {
        for code in 0..=u8::MAX {
            let request = Request::decode(&message(code, form));
            let verb = Verb::ALL.into_iter().find(|verb| verb.code() == code);
            let expected = verb.map(|verb| Request {
                verb,
                device: 3,
                size: 70,
                buffer_type: 2,
                process: 0,
                buffer: 9,
            });
            assert_eq!(request, expected, "{form:?} {code}");
        }
    }
    let kind = |verb, buffer_type| {
        let message = message(Verb::code(verb), MessageForm::Buffers);
        Request { buffer_type, ..Request::decode(&message).unwrap() }.kind()
    };
    assert_eq!(kind(Verb::Alloc, 2), Some(MemoryKind::SystemMemory));
    assert_eq!(kind(Verb::Alloc, 3), Some(MemoryKind::L1Small));
    assert_eq!(kind(Verb::Alloc, 4), Some(MemoryKind::Trace));
    assert_eq!((kind(Verb::Alloc, 5), kind(Verb::KernelLoad, 3)), (None, None));
    assert_eq!(kind(Verb::CbAlloc, 200), Some(MemoryKind::Cb));
    assert_eq!(kind(Verb::KernelLoad, 1), Some(MemoryKind::KernelFabric));
    assert_eq!(kind(Verb::Free, 0), None);
}

#[test]
fn what_does_not_fit_is_the_most_and_what_a_form_lacks_is_left_out() {
    let fields = vec![(&DRAM_PER_CHANNEL, 1 << 32), (&KERNEL, 5)];
    let answer = LegacyAnswer { code: 4, device: -1, fields };
    let first = answer.encode(MessageForm::Buffers);
    assert_eq!((first.len(), &first[4..8], &first[96..100]), (112, &[255; 4][..], &[255; 4][..]));
    assert_eq!(first[72..96], [0; 24]);
    let second = answer.encode(MessageForm::Programs);
    assert_eq!((second.len(), second[80], &second[112..116]), (128, 5, &[255; 4][..]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(telltale_harness::rounds(256, 50_000)))]
    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let decoded = Request::decode(&bytes);
        prop_assert!(decoded.is_none() || Request::is_possible(&bytes));
        // The beginning of what is possible is possible.
        let part = &bytes[..bytes.len() / 2];
        prop_assert!(!Request::is_possible(&bytes) || Request::is_possible(part));
    }
}
