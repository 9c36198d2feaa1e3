//! `telltale gpt --print`: what its kernels print reaches the screen, or files, as it was computed,
//! and changes nothing of the training.

use std::fs;
use std::path::Path;

use telltale_harness::Scratch;

use crate::cli::command::{said, telltale};
use crate::cli::gpt::{digest, gpt, lines};

/// The bytes of an event that was written, as float32.
#[track_caller]
fn numbers(place: &Path, prefix: &str, iteration: usize) -> Vec<f32> {
    let directory = place.join(prefix).join("core_0").join(iteration.to_string());
    let bytes = fs::read(directory.join("tensor_data.bin")).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn entries(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap();
    let mut names: Vec<String> =
        entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn activations_are_printed_when_due_and_the_weights_stay_the_same() {
    let place = Scratch::new();
    let usual = ["--steps", "4", "--json", "--weights-digest"];
    let silent = said(&mut gpt(place.path(), &usual));
    let print = ["--print", "0.gelu:every=3", "--print", "logits:every=2"];
    let printing = said(gpt(place.path(), &usual).args(print));
    assert_eq!(digest(&printing), digest(&silent));
    let printed: Vec<String> = lines(&printing)
        .iter()
        .filter_map(|line| {
            let prefix = line.get("prefix")?.as_str()?;
            Some(format!("{prefix} {} {}", line["iteration"], line["shape"]))
        })
        .collect();
    // Batches of 2 windows of 8 tokens: 16 rows; 4 times 16 numbers; 96 tokens.
    let expected = ["0.gelu 0 [16,64]", "logits 0 [16,96]", "logits 1 [16,96]", "0.gelu 1 [16,64]"];
    assert_eq!(printed, expected);
    let text = said(gpt(place.path(), &["--steps", "1"]).args(["--print", "norm"]));
    assert!(text.out.contains("\n[core 0] norm#0: float32 (16, 16), min -"), "{text:?}");
}

#[test]
fn files_have_the_loss_of_each_step_and_the_activations() {
    let place = Scratch::new();
    let [by_option, by_variable] = ["option", "variable"].map(|name| place.join(name));
    let runtime = Scratch::new();
    let usual = ["--steps", "3", "--weights-digest", "--print", "0.shares:every=2"];
    let mut command = gpt(runtime.path(), &usual);
    let first = said(command.arg("--debug-output-dir").arg(&by_option));
    let mut command = gpt(runtime.path(), &usual);
    let second = said(command.env("NEURON_RT_DEBUG_OUTPUT_DIR", &by_variable));
    for (said, files) in [(&first, &by_option), (&second, &by_variable)] {
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
        assert_eq!(entries(files), ["0.shares", "loss"]);
        assert_eq!(entries(&files.join("loss/core_0")), ["0", "1", "2"]);
        assert_eq!(entries(&files.join("0.shares/core_0")), ["0", "1"]);
        for step in 0..3 {
            let loss = numbers(files, "loss", step);
            let reported = format!("step {}  loss {:.4}  ", step + 1, loss[0]);
            assert!(said.out.contains(&reported), "{reported}: {said:?}");
            assert!(said.out.contains(&format!("[core 0] loss#{step}: float32 ()")), "{said:?}");
        }
        // 2 windows, 2 heads, and what each of 8 tokens sees of the others is 1 together.
        let shares = numbers(files, "0.shares", 1);
        assert_eq!(shares.len(), 2 * 2 * 8 * 8);
        for row in shares.chunks(8) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
        }
    }
    let bits = |files: &Path| -> Vec<u32> {
        numbers(files, "0.shares", 1).iter().map(|number| number.to_bits()).collect()
    };
    assert_eq!(bits(&by_option), bits(&by_variable), "equal trainings print equal bits");
    let json = said(gpt(runtime.path(), &["--json", "--debug-output-dir"]).arg(&by_option));
    assert_eq!(json.status, Some(64), "lines of both kinds would be mixed: {json:?}");
}

#[test]
fn what_no_model_has_is_refused() {
    let place = Scratch::new();
    let mut command = gpt(place.path(), &["--steps", "1", "--print", "1.gelu"]);
    said(&mut command).complains(2, &["1.gelu cannot be printed", "1 layers", "--print"]);
    for (print, words) in [
        ("gelu", "attention_norm, queries"),
        ("0.gelu:every=0", "at least 1"),
        ("0.gelu:each=2", "neither LAYER.NAME"),
    ] {
        let said = said(telltale().args(["gpt", "--print", print]));
        assert_eq!(said.status, Some(64), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
    // No machine was made for it.
    assert_eq!(entries(place.path()), [""; 0]);
}
