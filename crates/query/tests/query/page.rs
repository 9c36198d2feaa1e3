//! docs/query.md lists the fields as they are.

use telltale_query::{Dimension, Field, Owner};

const PAGE: &str = include_str!("../../../../docs/query.md");

#[test]
fn the_page_has_each_field_and_each_unit() {
    let row = |field: &Field| {
        let kind = field.kind.words();
        let kind = kind.split(" (").next().unwrap_or_default().to_owned();
        format!("| `{}` | {kind} | {} |", field.name, field.help)
    };
    let missing: Vec<String> =
        Field::all().iter().map(row).filter(|row| !PAGE.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "docs/query.md lacks these rows:\n{}", missing.join("\n"));
    let rows = PAGE.lines().filter(|line| line.starts_with("| `")).count();
    let owners = [Owner::Process, Owner::Device];
    assert!(Field::all().iter().all(|field| owners.contains(&field.owner)));
    let dimensions = [
        Dimension::Bytes,
        Dimension::Temperature,
        Dimension::Power,
        Dimension::Frequency,
        Dimension::Time,
        Dimension::Share,
    ];
    for dimension in dimensions {
        let units: Vec<_> = dimension.units().map(|unit| format!("`{unit}`")).collect();
        let row = format!("| {} | {} |", dimension.words(), units.join(" "));
        assert!(PAGE.contains(&row), "docs/query.md lacks this row:\n{row}");
    }
    assert_eq!(rows, Field::all().len(), "docs/query.md has a field that there is not");
}
