//! The commands in docs/grpc.md: what they ask for is there, and they say it as grpcurl wants it.
//!
//! grpcurl itself is not run: it is not in Debian.

use std::collections::BTreeSet;
use std::path::Path;

/// Flags of grpcurl that the document may use, and whether a value follows
/// (<https://github.com/fullstorydev/grpcurl/blob/master/cmd/grpcurl/grpcurl.go>).
const FLAGS: [(&str, bool); 6] = [
    ("-plaintext", false),
    ("-unix", false),
    ("-authority", true),
    ("-cacert", true),
    ("-H", true),
    ("-d", true),
];

const SERVICE: &str = "telltale.telemetry.v1.Telemetry";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of each command, as a shell would split them.
fn commands() -> Vec<Vec<String>> {
    let document = read("docs/grpc.md");
    let (_, block) = document.split_once("```sh\n").expect("the document has commands");
    let (block, _) = block.split_once("```").expect("they end");
    let block = block.replace("\\\n", " ");
    let (name, value) =
        block.lines().next().and_then(|line| line.split_once('=')).expect("a variable first");
    let block = block.replace(&format!("${name}"), value.trim_matches('"'));
    block.lines().skip(1).map(words).collect()
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            (_, letter) => word.push(letter),
        }
    }
    words.push(word);
    words
}

/// The names of fields of a message of the definitions.
fn fields(definitions: &str, message: &str) -> BTreeSet<String> {
    let (_, rest) = definitions.split_once(&format!("message {message} {{")).expect("it is there");
    let (body, _) = rest.split_once("\n}").expect("it ends");
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines
        .filter_map(|line| line.split_once(" = ")?.0.split(' ').next_back().map(str::to_owned))
        .collect()
}

#[test]
fn the_documented_commands_ask_for_what_there_is() {
    let definitions = read("crates/wire/proto/telemetry.proto");
    let mut methods = 0;
    for command in commands() {
        assert_eq!(command[0], "grpcurl", "{command:?}");
        let mut rest = command[1..].iter();
        let (mut data, mut places) = (None, Vec::new());
        while let Some(word) = rest.next() {
            if !word.starts_with('-') {
                places.push(word.as_str());
                continue;
            }
            let (_, has_value) = FLAGS
                .iter()
                .find(|(flag, _)| flag == word)
                .unwrap_or_else(|| panic!("nobody knows {word} of {command:?}"));
            let value = has_value.then(|| rest.next().expect("a value follows"));
            if word == "-d" {
                data = value;
            }
        }
        let [address, asked] = places[..] else { panic!("an address and a method: {places:?}") };
        let is_local = command.iter().any(|word| word == "-unix");
        assert_eq!(address.starts_with('/'), is_local, "{command:?}");
        if asked == "list" {
            continue;
        }
        let (service, method) = asked.split_once('/').expect("a service and a method");
        assert_eq!(service, SERVICE);
        let words = format!("rpc {method}(");
        let (_, rest) = definitions.split_once(&words).unwrap_or_else(|| panic!("no {method}"));
        let (request, _) = rest.split_once(')').expect("it takes a request");
        if let Some(data) = data {
            let data: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(data).expect("data is JSON");
            let known = fields(&definitions, request);
            assert!(data.keys().all(|key| known.contains(key)), "{data:?} of {known:?}");
        }
        methods += 1;
    }
    assert_eq!(methods, 4, "which commands are left?");
}
