//! Programs have one key exactly when they have one structure.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_assert_ne, proptest};
use telltale_program_cache::{
    DecodeError, KeyEncoder, OwnedKey, ProgramArguments, ProgramDescriptor,
};

use crate::program::example;
use crate::program::some_program::{in_order, program, structure};

fn key_of(program: &ProgramDescriptor) -> OwnedKey {
    program.key(&mut KeyEncoder::new()).to_owned()
}

fn reversed(mut program: ProgramDescriptor) -> ProgramDescriptor {
    for kernel in &mut program.kernels {
        kernel.named_compile_time_arguments.reverse();
        kernel.defines.reverse();
    }
    for buffer in &mut program.circular_buffers {
        buffer.formats.reverse();
        buffer.remote_formats.reverse();
    }
    program.semaphores.reverse();
    program
}

/// A program and one that shares most of its parts.
fn alike() -> impl Strategy<Value = (ProgramDescriptor, ProgramDescriptor)> {
    (program(), program(), any::<[bool; 3]>()).prop_map(|(one, other, keep)| {
        let mut mixed = one.clone();
        if !keep[0] {
            mixed.kernels.truncate(1);
            mixed.kernels.extend(other.kernels);
        }
        if !keep[1] {
            mixed.circular_buffers = other.circular_buffers;
        }
        if !keep[2] {
            mixed.semaphores = other.semaphores;
        }
        (one, mixed)
    })
}

proptest! {
    #[test]
    fn a_key_can_be_read_back(program in program()) {
        let words = ProgramArguments::of(&program).unwrap();
        let read = ProgramDescriptor::from_key(key_of(&program).bytes(), words.words());
        prop_assert_eq!(read, Ok(in_order(program)));
    }

    #[test]
    fn keys_are_equal_when_structures_are((one, two) in alike()) {
        let same = structure(one.clone()) == structure(two.clone());
        prop_assert_eq!(key_of(&one) == key_of(&two), same);
    }

    #[test]
    fn order_that_does_not_matter_and_values_are_not_in_the_key(program in program()) {
        let reversed = reversed(program.clone());
        // Names that stand twice keep their order, so only programs without any can be compared.
        if structure(reversed.clone()) == structure(program.clone()) {
            prop_assert_eq!(key_of(&program), key_of(&reversed));
        }
        let other_words = program.map(|word| word.wrapping_add(1));
        prop_assert_eq!(key_of(&program), key_of(&other_words));
    }

    #[test]
    fn bytes_that_are_no_key_are_refused(program in program(), cut in any::<usize>()) {
        let key = key_of(&program);
        let words = ProgramArguments::of(&program).unwrap();
        let cut = cut % key.bytes().len();
        prop_assert!(ProgramDescriptor::from_key(&key.bytes()[..cut], words.words()).is_err());
        let longer = [key.bytes(), &[0]].concat();
        prop_assert_eq!(
            ProgramDescriptor::from_key(&longer, words.words()),
            Err(DecodeError::Longer { left: 1 })
        );
        let more = [words.words(), &[0]].concat();
        prop_assert!(ProgramDescriptor::from_key(key.bytes(), &more).is_err());
    }

    #[test]
    fn changed_bytes_are_read_as_another_program_or_refused(
        program in program(), place in any::<usize>(), change in 1u8..
    ) {
        let key = key_of(&program);
        let words = ProgramArguments::of(&program).unwrap();
        let mut bytes = key.bytes().to_vec();
        let place = place % bytes.len();
        bytes[place] ^= change;
        if let Ok(read) = ProgramDescriptor::from_key(&bytes, words.words()) {
            prop_assert_ne!(Ok(read), ProgramDescriptor::from_key(key.bytes(), words.words()));
        }
    }
}

#[test]
fn orders_that_do_not_matter_give_one_key() {
    let program = example::program();
    assert_ne!(reversed(program.clone()), program);
    assert_eq!(key_of(&reversed(program.clone())), key_of(&program));
}

#[test]
fn orders_by_which_words_are_found_give_different_keys() {
    let program = example::program();
    let mut kernels = program.clone();
    kernels.kernels.swap(0, 1);
    assert_ne!(key_of(&kernels), key_of(&program));
    let mut buffers = program.clone();
    buffers.circular_buffers.swap(0, 1);
    assert_ne!(key_of(&buffers), key_of(&program));
}

#[test]
fn placement_of_192_argument_lists_takes_few_bytes() {
    let mut program = ProgramDescriptor::default();
    for kernel in example::program().kernels.into_iter().take(3) {
        program.kernels.push(kernel);
    }
    for kernel in &mut program.kernels {
        kernel.runtime_arguments = telltale_program_cache::RuntimeArguments::new();
    }
    let without = key_of(&program).bytes().len();
    for kernel in &mut program.kernels {
        kernel.runtime_arguments.push_range(example::range(0, 0, 7, 7), |_| [0; 12]);
    }
    assert_eq!(key_of(&program).bytes().len() - without, 3 * 12);
}
