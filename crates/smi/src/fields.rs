//! The fields that filters, `--sort` and the lists of fields can name.

use telltale_query::{Field, FieldKind, Owner};

use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::text;

/// All of them, those of processes first, with units and meaning.
pub fn fields(style: &Style) -> String {
    let section = |title: &str, owner: Owner| {
        let mut table = Table::new(vec![
            Column::left("FIELD", 0),
            Column::left("UNIT", 1),
            Column::left("MEANING", 0),
        ]);
        for field in Field::all().iter().filter(|field| field.owner == owner) {
            table.push(vec![Cell::new(field.name), unit(field), Cell::new(field.help)]);
        }
        text::painted(title, Tone::Heading, style) + &table.render(style)
    };
    section("Of a process, and of what it has on a device", Owner::Process)
        + "\n"
        + &section("Of a device", Owner::Device)
}

fn unit(field: &Field) -> Cell {
    match field.kind {
        FieldKind::Text => Cell::toned("text", Tone::Faint),
        FieldKind::Word(words) => Cell::toned(words.join(" "), Tone::Faint),
        FieldKind::Number(_) => Cell::new(field.kind.unit().unwrap_or_default()),
    }
}
