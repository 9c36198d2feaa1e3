//! The schemas of what JSON has as text of a certain form. For the published schemas alone.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::chip::{AsicId, BoardId, PciAddress};

/// A boot id, as the kernel prints it.
pub(crate) struct BootId;

/// A number that a program reported, which JSON may have no number for.
pub(crate) struct Float;

impl JsonSchema for Float {
    fn schema_name() -> Cow<'static, str> {
        "Float".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "format": "double" },
                { "type": "string", "enum": ["NaN", "+Inf", "-Inf"] },
            ],
            "description": "A number, or the text for one that JSON has not.",
        })
    }
}

macro_rules! text {
    ($type:ident, $pattern:literal, $description:literal) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "description": $description,
                })
            }
        }
    };
}

text!(
    PciAddress,
    "^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]$",
    "A PCI address: domain, bus, device and function, as in 0000:03:00.0."
);
text!(AsicId, "^[0-9a-f]{1,16}$", "What the firmware calls the chip, in hexadecimal.");
text!(BoardId, "^[0-9a-f]{16}$", "The board's serial number, in hexadecimal.");
text!(
    BootId,
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    "The kernel's boot id."
);
