//! The published JSON Schemas, made from the types that `telltale smi --json` and `telltale autopsy --json` write.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use telltale_autopsy::report::{self, AutopsyReport};
use telltale_schema::fleet::{FLEET_VERSION, Fleet};
use telltale_schema::snapshot::{SCHEMA_VERSION, Snapshot};

use super::GeneratedFile;

/// The schemas of one machine, of several, and of why processes hang.
#[must_use]
pub fn outputs() -> Vec<GeneratedFile> {
    let mut snapshot = schema_of::<Snapshot>("snapshot", SCHEMA_VERSION);
    snapshot["properties"]["schema_version"] = version(SCHEMA_VERSION);
    snapshot["properties"]["cleaned"] = cleaned();
    let mut fleet = schema_of::<Fleet>("fleet", FLEET_VERSION);
    fleet["properties"]["fleet_version"] = version(FLEET_VERSION);
    fleet["$defs"]["Snapshot"]["properties"]["schema_version"] = version(SCHEMA_VERSION);
    let mut autopsy = schema_of::<AutopsyReport>("autopsy", report::SCHEMA_VERSION);
    autopsy["properties"]["schema_version"] = version(report::SCHEMA_VERSION);
    vec![
        output("docs/snapshot.schema.json", &snapshot),
        output("docs/fleet.schema.json", &fleet),
        output("docs/autopsy.schema.json", &autopsy),
    ]
}

fn output(path: &str, schema: &Value) -> GeneratedFile {
    let text = serde_json::to_string_pretty(schema).expect("a schema has only string keys");
    GeneratedFile { path: path.to_owned(), text: text + "\n" }
}

/// The schema of what is written; what older writers left out is not checked.
fn schema_of<T: JsonSchema>(name: &str, version: u32) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema: Schema = generator.into_root_schema_for::<T>();
    schema.insert(String::from("$id"), json!(format!("urn:telltale:{name}:{version}")));
    let mut value = schema.to_value();
    plain(&mut value);
    value
}

/// Descriptions are rustdoc, whose links mean nothing here.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`").replace('\n', " ");
                    }
                    other => plain(other),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        _ => {}
    }
}

fn version(version: u32) -> Value {
    json!({
        "description": "The version of this shape. It grows when a field changes its meaning or \
                        goes away; new fields may come without.",
        "const": version,
    })
}

/// What `--clean` adds.
fn cleaned() -> Value {
    let files = |description: &str| {
        json!({
            "description": description,
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"description": "The file.", "type": "string"},
                    "why": {"description": "The reason, for a person.", "type": "string"},
                },
                "required": ["path", "why"],
            },
        })
    };
    json!({
        "description": "What --clean removed and left; there only with --clean.",
        "type": "object",
        "properties": {
            "removed": files("Files that are gone."),
            "left": files("Files that are still there."),
            "failed": {
                "description": "How many of those left should have gone.",
                "type": "integer",
                "minimum": 0,
            },
        },
        "required": ["removed", "left", "failed"],
    })
}
