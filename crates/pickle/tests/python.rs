//! What Python writes is what is read.

use std::fs;

use serde::Deserialize;
use serde_json::Value;
use telltale_harness::{Scratch, python_with};
use telltale_pickle::from_slice;

/// Writes the same random data as JSON and as a pickle of each protocol that has binary opcodes.
const WRITE: &str = r#"
import json, pickle, random, sys

random.seed(7)
names = ["name", "state", "größe", "a" * 300]
shared = {"file": "train.py", "line": 7}

def value(depth):
    kind = random.randrange(10 if depth < 5 else 7)
    if kind < 2:
        return random.choice([0, 1, -1, 255, 256, 65535, 65536, -2**31, 2**31, 2**40, -2**63, 2**63 - 1])
    if kind == 2:
        return random.choice([0.5, -1e300, 3.25])
    if kind == 3:
        return random.choice([None, True, False])
    if kind < 6:
        return random.choice(names) + str(random.randrange(3))
    if kind == 6:
        return shared
    if kind == 7:
        return {name: value(depth + 1) for name in names[: random.randrange(5)]}
    return [value(depth + 1) for _ in range(random.choice([0, 1, 2, 3, 50]))]

data = [value(0) for _ in range(200)]
directory = sys.argv[1]
with open(f"{directory}/data.json", "w") as file:
    json.dump(data, file)
for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
    with open(f"{directory}/data.{protocol}", "wb") as file:
        pickle.dump(data, file, protocol)
"#;

#[test]
fn every_binary_protocol_gives_what_json_gives() {
    const TEST: &str = "python::every_binary_protocol_gives_what_json_gives";
    let Some(mut python) = python_with(TEST, "pickle") else { return };
    let scratch = Scratch::new();
    assert!(python.args(["-c", WRITE]).arg(scratch.path()).status().unwrap().success());
    let json: Value =
        serde_json::from_slice(&fs::read(scratch.join("data.json")).unwrap()).unwrap();
    for protocol in 2..=5 {
        let bytes = fs::read(scratch.join(format!("data.{protocol}"))).unwrap();
        assert_eq!(from_slice::<Value>(&bytes).unwrap(), json, "protocol {protocol}");
    }
}

#[test]
fn tuples_options_and_what_is_not_wanted_are_as_serde_has_them() {
    const TEST: &str = "python::tuples_options_and_what_is_not_wanted_are_as_serde_has_them";
    #[derive(Debug, Deserialize, PartialEq)]
    struct Entry<'a> {
        id: u64,
        group: (String, String),
        #[serde(borrow)]
        state: &'a str,
        duration: Option<f64>,
    }
    let Some(mut python) = python_with(TEST, "pickle") else { return };
    let scratch = Scratch::new();
    let write = "import pickle,sys; pickle.dump([{'id': 3, 'group': ('0', 'default'), 'state': 'scheduled', \
                 'duration': None, 'frames': [{'deep': [1, b'x']}]}], open(sys.argv[1], 'wb'))";
    let path = scratch.join("entries");
    assert!(python.args(["-c", write]).arg(&path).status().unwrap().success());
    let bytes = fs::read(&path).unwrap();
    let group = ("0".to_owned(), "default".to_owned());
    let expected = [Entry { id: 3, group, state: "scheduled", duration: None }];
    assert_eq!(from_slice::<Vec<Entry<'_>>>(&bytes).unwrap(), expected);
}
