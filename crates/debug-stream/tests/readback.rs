//! Files of tensors read back by NumPy and by the safetensors package, where Python has them.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

use std::fs;

use telltale_debug_stream::sink::{write_npy, write_safetensors};
use telltale_debug_stream::{Dtype, Tensor};
use telltale_harness::{Scratch, python, python_with};

/// What a script prints.
fn run(script: &str, arguments: &[&str]) -> String {
    let output = python().args(["-c", script]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Six elements with the codes 1 to 6 in each byte.
fn data(dtype: Dtype) -> Vec<u8> {
    (1..=6).flat_map(|code| vec![code; dtype.element_bytes()]).collect()
}

#[test]
fn numpy_reads_every_type_with_its_values() {
    let test = "numpy_reads_every_type_with_its_values";
    if python_with(test, "numpy").is_none() {
        return;
    }
    let scratch = Scratch::new();
    for dtype in Dtype::ALL {
        let data = data(dtype);
        let tensor = Tensor::new(dtype.name(), &[2, 3], &data).unwrap();
        let mut file = Vec::new();
        write_npy(&mut file, &tensor).unwrap();
        let path = scratch.join(format!("{}.npy", dtype.name()));
        fs::write(&path, file).unwrap();
        let script = "import numpy, sys\n\
                      a = numpy.load(sys.argv[1])\n\
                      print(a.shape, *[repr(v) for v in a.astype(object).flatten().tolist()])";
        let found = run(script, &[path.to_str().unwrap()]);
        let (shape, values) = found.trim().split_once(") ").unwrap();
        assert_eq!(shape, "(2, 3", "{dtype:?}");
        let values: Vec<f64> = values.split(' ').map(|value| value.parse().unwrap()).collect();
        let expected: Vec<f64> = tensor.values().map(|value| value.to_f64()).collect();
        assert_eq!(values, expected, "{dtype:?}");
    }
}

#[test]
fn safetensors_reads_shapes_and_bytes_of_what_it_has_names_for() {
    let test = "safetensors_reads_shapes_and_bytes_of_what_it_has_names_for";
    if python_with(test, "numpy, safetensors.numpy").is_none() {
        return;
    }
    let scratch = Scratch::new();
    for dtype in [Dtype::Int8, Dtype::Uint64, Dtype::Float16, Dtype::Float32r, Dtype::Float8e4m3] {
        let data = data(dtype);
        let tensor = Tensor::new(dtype.name(), &[3, 2], &data).unwrap();
        let mut file = Vec::new();
        write_safetensors(&mut file, "layer/0", &tensor).unwrap();
        let path = scratch.join(format!("{}.safetensors", dtype.name()));
        fs::write(&path, file).unwrap();
        let script = "import sys\n\
                      from safetensors.numpy import load_file\n\
                      a = load_file(sys.argv[1])['layer/0']\n\
                      print(a.shape, a.tobytes().hex())";
        let found = run(script, &[path.to_str().unwrap()]);
        let bytes: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found.trim(), format!("(3, 2) {bytes}"), "{dtype:?}");
    }
}
