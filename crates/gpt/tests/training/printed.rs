//! Activations that a kernel prints: their bytes are those that the step computed with, and the
//! training is the same without them.

use telltale_debug_stream::NextEvent;
use telltale_gpt::{Activation, Training};
use telltale_operations::PRINTING_CORE;
use telltale_program_cache::CacheMode;

use crate::training::bench::Bench;

const STEPS: usize = 3;
const PRINTED: [&str; 5] = ["0.gelu", "0.shares", "0.keys", "0.input", "logits"];

/// What a training came to.
struct Trained {
    /// The losses' and the weights' bits.
    bits: (Vec<u32>, u64),
    /// The bytes of what was printed, as they are read back, by name.
    read: Vec<(String, Vec<u8>)>,
}

/// Trains some steps and prints in each what is named.
fn train(mut training: Training, printed: &[&str]) -> Trained {
    let mut read = Vec::new();
    let losses = (0..STEPS).map(|_| {
        let loss = training.step_looking(|session, activations| {
            for name in printed {
                let activation: Activation = name.parse().unwrap();
                let tensor = activations.get(activation).unwrap();
                session.print(name, tensor)?;
                read.push(((*name).to_owned(), session.read_bytes(tensor)?));
            }
            let beyond: Activation = "1.gelu".parse().unwrap();
            assert!(activations.get(beyond).is_none(), "there is one layer");
            Ok(())
        });
        loss.unwrap().to_bits()
    });
    let losses = losses.collect();
    Trained { bits: (losses, training.weights_digest().unwrap()), read }
}

#[test]
fn printed_activations_are_the_ones_computed_with_and_change_nothing() {
    let bench = Bench::new();
    let silent = train(bench.training(CacheMode::On), &[]);
    for mode in [CacheMode::On, CacheMode::Off, CacheMode::Check] {
        let training = bench.training(mode);
        let accelerator = training.session().accelerator();
        let stream = accelerator.debug_stream(PRINTING_CORE).unwrap();
        let mut consumer = stream.connect().unwrap();
        let printing = train(training, &PRINTED);
        assert_eq!(printing.bits, silent.bits, "{mode}");
        let mut events = Vec::new();
        while let Some(next) = consumer.try_next().unwrap() {
            let NextEvent::Event(event) = next else { panic!("{next:?}") };
            assert_eq!(event.dtype, "float32");
            events.push((event.prefix, event.data));
        }
        assert_eq!(events.len(), STEPS * PRINTED.len());
        assert!(events == printing.read, "what was printed is not what was read back");
    }
}
