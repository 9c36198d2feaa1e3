//! The types of the Python module's native half: a template, and in it the fields of the query language, which are
//! attributes.

use std::path::Path;

use telltale_query::{Field, FieldKind, Owner};

use super::{GenerateError, GeneratedFile};

/// What is written by hand.
const TEMPLATE: &str = "crates/python/types.pyi";
const STUB: &str = "crates/python/python/telltale/_telltale.pyi";
/// The lines of the template in whose place fields come.
const MARKS: [(&str, Owner); 2] = [
    ("    # The fields of devices.\n", Owner::Device),
    ("    # The fields of processes.\n", Owner::Process),
];
/// What names a device's own memory in the query language, and no attribute.
const OF_DEVICE: &str = "device.";

/// The stub.
pub(super) fn output(root: &Path) -> Result<GeneratedFile, GenerateError> {
    let path = root.join(TEMPLATE);
    let template =
        std::fs::read_to_string(&path).map_err(|source| GenerateError::Read { path, source })?;
    let mut text = format!(
        "# Generated from {TEMPLATE} and the fields of crates/query by `cargo xtask generate`.\n"
    );
    text.push_str(&template);
    for (mark, owner) in MARKS {
        if !text.contains(mark) {
            let path = root.join(TEMPLATE);
            return Err(GenerateError::NoMark { path, mark: mark.trim() });
        }
        let fields = Field::all().iter().filter(|field| field.owner == owner);
        text = text.replace(mark, &fields.map(attribute).collect::<String>());
    }
    Ok(GeneratedFile { path: STUB.to_owned(), text })
}

/// A field as an attribute with its type, meaning and unit.
fn attribute(field: &Field) -> String {
    let name = field.name.strip_prefix(OF_DEVICE).unwrap_or(field.name);
    let kind = match field.kind {
        FieldKind::Text => String::from("str"),
        FieldKind::Word(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            format!("Literal[{}]", words.join(", "))
        }
        FieldKind::Number(_) if field.is_whole() => String::from("int"),
        FieldKind::Number(_) => String::from("float"),
    };
    let unit = field.kind.unit().map(|unit| format!(" ({unit})")).unwrap_or_default();
    let help = field.help.replace('\\', "\\\\").replace('"', "'");
    format!(
        "    @property\n    def {name}(self) -> {kind} | None:\n        \"\"\"{help}{unit}\"\"\"\n"
    )
}
