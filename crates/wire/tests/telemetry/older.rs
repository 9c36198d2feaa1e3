//! What an older version writes lacks the fields that were added since. Each field of a snapshot is
//! left out in turn, in JSON and in protobuf, and the rest must be there as it was.
//!
//! The fields are those of the types and of the `.proto` file: a new one is tried without being
//! named here. If the test complains of it, older files and nodes could not be read any more.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use serde_json::{Map, Value};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::Snapshot;
use telltale_wire::telemetry::decode::snapshot_answer;
use telltale_wire::telemetry::{DESCRIPTORS, encode};

use crate::telemetry::arbitrary::Drawn;
use crate::telemetry::{answer, joined};

/// Snapshots that together have every field, and how many of those with it each field is tried in.
const SNAPSHOTS: u64 = 60;
const TRIES: u32 = 8;

/// What 0.1.0 always wrote, and no snapshot can be without. Nothing is added to these lists: a field
/// that is new is a `Reading`, an `Option`, or has a default.
const REQUIRED_JSON: &str = include_str!("required_json.txt");

/// The same in protobuf, where only messages and enumerations are missed.
const REQUIRED_PROTOBUF: &str = include_str!("required_protobuf.txt");

/// Fields of protobuf that have no presence: 0.1.0 sends them always, though a 0 takes no bytes. One
/// that is new is `optional`, because what an older node does not send is not 0.
const PLAIN_PROTOBUF: &str = include_str!("plain_protobuf.txt");

/// Parts that came after 0.1.0, which has none of them, so that none lacks a field. By their paths in JSON.
const LATER: [&str; 3] = ["devices[].faults[]", "faults[]", "sources[].notes[]"];

/// A snapshot that 0.1.0 wrote.
const OLDER: &str = include_str!("../../../telltale/tests/corpus/0.1.0-5fa670d/n300.json");

/// Whether this is a field of a part that 0.1.0 has not.
fn is_later(path: &str) -> bool {
    let path = path.strip_prefix("snapshot.").unwrap_or(path).replace("[]", "");
    LATER.iter().any(|part| path.starts_with(&format!("{}.", part.replace("[]", ""))))
}

/// Fields with how often each was tried, and those without which nothing could be read.
#[derive(Default)]
struct Tried {
    counts: BTreeMap<String, u32>,
    needed: BTreeSet<String>,
}

impl Tried {
    /// Tries a field that some snapshot has, unless that was done often enough.
    fn field(&mut self, path: &str, is_read_without: impl FnOnce() -> bool) {
        let count = self.counts.entry(path.to_owned()).or_default();
        *count += 1;
        if *count <= TRIES && !is_read_without() {
            self.needed.insert(path.to_owned());
        }
    }

    /// Asserts that nothing but these fields is needed, and that they are.
    fn check(&self, required: &str) {
        let required: BTreeSet<String> = required.lines().map(str::to_owned).collect();
        let more = self.needed.difference(&required);
        let more: Vec<_> = more.filter(|path| !is_later(path)).collect();
        assert!(
            more.is_empty(),
            "what older versions wrote lacks these, and is not read: {more:#?}"
        );
        let fewer: Vec<_> = required.difference(&self.needed).collect();
        assert!(fewer.is_empty(), "nothing needs these any more; take them off: {fewer:#?}");
    }
}

// === JSON ===

/// A step from a value to one inside it.
#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Place(usize),
}

/// Fields by their paths, as in `devices[].telemetry`, each with the way to one of that path.
type Fields = BTreeMap<String, Vec<Step>>;

fn is_reading(value: &Value) -> bool {
    value.get("absent").is_some() || (value.get("value").is_some() && value.get("at").is_some())
}

/// Adds the fields of `value`. What a reading consists of is no field, nor are the keys of a map.
fn add_fields(value: &Value, path: &str, way: &[Step], fields: &mut Fields) {
    let inside = |step: Step| [way, &[step]].concat();
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                add_fields(item, &format!("{path}[]"), &inside(Step::Place(place)), fields);
            }
        }
        Value::Object(entries) if is_reading(value) => {
            if let Some(found) = entries.get("value") {
                add_fields(found, path, &inside(Step::Key("value".to_owned())), fields);
            }
        }
        Value::Object(_) if path.ends_with(".firmware") || path.ends_with(".category_bytes") => {}
        Value::Object(entries) => {
            for (key, found) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                let (path, way) = (format!("{path}{dot}{key}"), inside(Step::Key(key.clone())));
                add_fields(found, &path, &way, fields);
                fields.entry(path).or_insert(way);
            }
        }
        _ => {}
    }
}

/// The object that a way ends in, and its last key.
fn parent<'a>(value: &'a mut Value, way: &'a [Step]) -> (&'a mut Map<String, Value>, &'a str) {
    let (Some(Step::Key(key)), before) = (way.last(), &way[..way.len() - 1]) else {
        panic!("a way ends with a key: {way:?}")
    };
    let parent = before.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Place(place) => &mut value[place],
    });
    (parent.as_object_mut().expect("a key is in an object"), key)
}

/// Whether a snapshot without this field is read, and has all that it had besides.
fn is_read_without(whole: &Value, way: &[Step]) -> bool {
    let mut cut = whole.clone();
    let (object, key) = parent(&mut cut, way);
    let removed = object.remove(key).expect("the field is there");
    let Ok(snapshot) = serde_json::from_value::<Snapshot>(cut.clone()) else { return false };
    let mut found = serde_json::to_value(snapshot).expect("a snapshot is JSON");
    let (object, key) = parent(&mut found, way);
    let instead = object.remove(key);
    let unreported = serde_json::to_value(Reading::<u64>::unreported()).expect("it is JSON");
    found == cut && (!is_reading(&removed) || instead == Some(unreported))
}

#[test]
fn later_parts_are_not_in_what_older_versions_wrote() {
    let mut fields = Fields::new();
    let older = serde_json::from_str(OLDER).expect("it is JSON");
    add_fields(&older, "", &[], &mut fields);
    assert!(fields.contains_key("sources[].errors"), "{:?}", fields.keys());
    for part in LATER {
        let list = part.strip_suffix("[]").expect("a part of a list");
        assert!(!fields.contains_key(list), "{part}");
    }
}

#[test]
fn json_without_a_field_is_read_with_the_rest() {
    let mut tried = Tried::default();
    for seed in 0..SNAPSHOTS {
        let whole = serde_json::to_value(Drawn(seed).snapshot()).expect("a snapshot is JSON");
        let mut fields = Fields::new();
        add_fields(&whole, "", &[], &mut fields);
        for (path, way) in fields {
            tried.field(&path, || is_read_without(&whole, &way));
        }
    }
    tried.check(REQUIRED_JSON);
    for path in ["devices[].telemetry.power_watts", "processes[].uid", "devices[].facts"] {
        assert!(tried.counts.contains_key(path), "{path} was not tried");
    }
}

// === protobuf ===

/// The messages of `telemetry.proto` by name.
struct Messages(BTreeMap<String, DescriptorProto>);

impl Messages {
    fn new() -> Self {
        let set = FileDescriptorSet::decode(DESCRIPTORS).expect("they are descriptors");
        let of_file = |file: prost_types::FileDescriptorProto| {
            let package = format!(".{}.", file.package());
            file.message_type.into_iter().map(move |one| (format!("{package}{}", one.name()), one))
        };
        Self(set.file.into_iter().flat_map(of_file).collect())
    }

    fn field(&self, message: &str, number: u32) -> &FieldDescriptorProto {
        let fields = &self.0[message].field;
        let found = fields.iter().find(|field| u32::try_from(field.number()) == Ok(number));
        found.unwrap_or_else(|| panic!("{message} has no field {number}"))
    }

    /// All ways to fields from this message on, by their paths.
    fn add_ways(&self, message: &str, path: &str, way: &[u32], ways: &mut BTreeMap<String, Way>) {
        for field in &self.0[message].field {
            let number = u32::try_from(field.number()).expect("numbers are small");
            let dot = if path.is_empty() { "" } else { "." };
            let (path, way) = (format!("{path}{dot}{}", field.name()), [way, &[number]].concat());
            let inner = (field.r#type() == Type::Message).then(|| field.type_name().to_owned());
            let is_reading = inner.as_deref().is_some_and(|name| name.ends_with("Reading"));
            // What a reading consists of is no field, but its value may have some.
            if !is_outcome(message, field.name()) {
                let is_plain = inner.is_none() && !has_presence(field);
                ways.insert(path.clone(), Way { numbers: way.clone(), is_reading, is_plain });
            }
            if let Some(inner) = inner {
                self.add_ways(&inner, &path, &way, ways);
            }
        }
    }

    /// The bytes of a message without the fields at the end of this way.
    fn without(&self, message: &str, bytes: &[u8], way: &[u32]) -> Vec<u8> {
        let mut left = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let start = rest;
            let key = varint(&mut rest);
            let number = u32::try_from(key >> 3).expect("numbers are small");
            let content = content(&mut rest, key & 7);
            match way {
                [only] if *only == number => {}
                [first, inner @ ..] if *first == number => {
                    let field = self.field(message, number);
                    let cut = self.without(field.type_name(), content, inner);
                    prost::encoding::encode_varint(key, &mut left);
                    prost::encoding::encode_varint(
                        u64::try_from(cut.len()).expect("it fits"),
                        &mut left,
                    );
                    left.extend(cut);
                }
                _ => left.extend(&start[..start.len() - rest.len()]),
            }
        }
        left
    }
}

/// A way to a field by numbers.
struct Way {
    numbers: Vec<u32>,
    is_reading: bool,
    is_plain: bool,
}

fn has_presence(field: &FieldDescriptorProto) -> bool {
    field.proto3_optional() || field.oneof_index.is_some() || field.label() == Label::Repeated
}

fn is_outcome(message: &str, field: &str) -> bool {
    let is_part = ["value", "absence", "at_unix_ns"].contains(&field);
    (message.ends_with("Reading") && is_part) || message.ends_with(".Absence")
}

fn varint(bytes: &mut &[u8]) -> u64 {
    prost::encoding::decode_varint(bytes).expect("a whole message")
}

/// What a field of this wire type has, without its length.
fn content<'a>(bytes: &mut &'a [u8], wire_type: u64) -> &'a [u8] {
    let start: &'a [u8] = bytes;
    let length = match wire_type {
        0 => {
            varint(bytes);
            return &start[..start.len() - bytes.len()];
        }
        1 => 8,
        2 => usize::try_from(varint(bytes)).expect("it fits"),
        5 => 4,
        other => panic!("no field of proto3 has wire type {other}"),
    };
    let (content, rest) = bytes.split_at(length);
    *bytes = rest;
    content
}

/// Whether two values are the same but for readings that are unreported in the second.
fn differ_in_unreported(one: &Value, two: &Value, unreported: &Value) -> bool {
    let alike = |one: &Value, two: &Value| differ_in_unreported(one, two, unreported);
    match (one, two) {
        _ if one == two || two == unreported => true,
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(key, value)| two.get(key).is_some_and(|it| alike(value, it)))
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| alike(one, two))
        }
        _ => false,
    }
}

#[test]
fn an_answer_without_a_field_is_read_with_the_rest() {
    const ANSWER: &str = ".telltale.telemetry.v1.GetSnapshotResponse";
    let messages = Messages::new();
    let mut ways = BTreeMap::new();
    messages.add_ways(ANSWER, "", &[], &mut ways);
    let plain = ways.iter().filter(|(path, way)| way.is_plain && !is_later(path));
    let plain: Vec<&str> = plain.map(|(path, _)| path.as_str()).collect();
    assert_eq!(plain, PLAIN_PROTOBUF.lines().collect::<Vec<_>>(), "a new field is optional");
    let unreported = serde_json::to_value(Reading::<u64>::unreported()).expect("it is JSON");
    let json = |snapshot: &Snapshot| serde_json::to_value(snapshot).expect("a snapshot is JSON");
    let mut tried = Tried::default();
    for seed in 0..SNAPSHOTS {
        let snapshot = Drawn(seed).snapshot();
        let bytes = match seed % 2 {
            0 => answer(&snapshot),
            _ => joined(&encode::past_answer(&snapshot, 10_000)),
        };
        let whole = json(&snapshot);
        for (path, way) in &ways {
            let cut = messages.without(ANSWER, &bytes, &way.numbers);
            let is_alike = |found: &Snapshot| {
                !way.is_reading || differ_in_unreported(&whole, &json(found), &unreported)
            };
            if cut != bytes {
                let found = || snapshot_answer(&cut).is_ok_and(|found| is_alike(&found.snapshot));
                tried.field(path, found);
            }
        }
    }
    let untried: Vec<_> = ways.keys().filter(|path| !tried.counts.contains_key(*path)).collect();
    assert!(untried.is_empty(), "no snapshot had these: {untried:#?}");
    tried.check(REQUIRED_PROTOBUF);
}
