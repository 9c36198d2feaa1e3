//! What stands beside an event's raw bytes, so that they can be read later.

use std::io::{self, Write};

use crate::Event;

/// Writes an event's metadata, a line for each fact. The first three are those that Neuron's own
/// consumer writes.
///
/// # Errors
/// When writing fails.
pub fn write_metadata(out: &mut impl Write, event: &Event) -> io::Result<()> {
    let shape: Vec<String> = event.shape.iter().map(ToString::to_string).collect();
    writeln!(out, "dtype = {}", event.dtype.escape_default())?;
    writeln!(out, "shape = ({})", shape.join(", "))?;
    writeln!(out, "data_size = {}", event.data.len())?;
    writeln!(out, "kind = {}", event.kind.name())?;
    writeln!(out, "type = {}", event.kind.code())?;
    writeln!(out, "prefix = {}", event.prefix.escape_default())?;
    writeln!(out, "core = {}", event.core)?;
    writeln!(out, "pipe = {}", event.pipe)?;
    writeln!(out, "sequence = {}", event.sequence)?;
    writeln!(out, "time_ns = {}", event.time_ns)?;
    if let Some(iteration) = event.iteration {
        writeln!(out, "iteration = {iteration}")?;
    }
    Ok(())
}
