//! `telltale man`: a manual page for each command, from the definition that parses the arguments.
//!
//! What follows the options in a help text becomes sections of its own: a paragraph that begins with
//! `Exit status:`, one that is headed `Examples:`, and everything else as description.

mod keys;

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;

use crate::arguments::{self, ManArguments};
use crate::exit::{Failure, Status};

const EXIT_STATUS: &str = "Exit status: ";
const EXAMPLES: [&str; 2] = ["Examples:", "Example:"];

/// What the page of the whole program says of files.
const FILES: [(&str, &str); 4] = [
    ("/etc/telltale/telltale.toml", "the configuration of the service"),
    ("/run/tt", "where processes have their ledgers and endpoints, and the service its socket"),
    ("/var/lib/telltale", "the history of an installed service"),
    (
        "~/.config/telltale/telltale.toml, ~/.local/state/telltale",
        "the same for a service of one user",
    ),
];

/// Runs the command.
pub(crate) fn run(arguments: &ManArguments) -> Result<Status, Failure> {
    let mut whole = arguments::definition().disable_help_subcommand(true);
    whole.build();
    fs::create_dir_all(&arguments.output).map_err(|error| unwritten(&arguments.output, &error))?;
    let date = date(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref());
    for command in all(&whole) {
        let path = arguments.output.join(format!("{}.1", name(command)));
        write(&path, &page(command, &whole, &date))?;
    }
    let head = title("telltale.toml", 5, &whole, &date);
    write(&arguments.output.join("telltale.toml.5"), &escaped(&keys::page(head)))?;
    Ok(Status::Fine)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::Message(format!(
        "cannot write {path}: {error}; name a directory that this user may write with --output"
    ))
}

/// A command and all below it that are shown.
fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|one| !one.is_hide_set());
    std::iter::once(command).chain(below.flat_map(all)).collect()
}

/// `telltale-config-check`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// `2026-11-21` of the seconds since 1970; empty without them.
fn date(seconds: Option<&str>) -> String {
    let seconds = seconds.and_then(|text| text.trim().parse::<u64>().ok());
    let moment = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)).map(Timestamp);
    moment.map(|moment| calendar::format(moment)[..10].to_owned()).unwrap_or_default()
}

/// The page of one command of `whole`.
fn page(command: &Command, whole: &Command, date: &str) -> String {
    let man = Man::new(command.clone());
    let after = After::of(command);
    let title = title(name(command), 1, whole, date);
    // Writing into memory does not fail.
    let rendered = |render: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut bytes = Vec::new();
        render(&mut bytes).expect("a Vec takes every write");
        String::from_utf8(bytes).expect("texts make a text")
    };
    let mut sections = vec![
        rendered(&|out| man.render_name_section(out)),
        synopsis(command).render(),
        rendered(&|out| man.render_description_section(out)),
        after.description.render(),
    ];
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        sections.push(rendered(&|out| man.render_options_section(out)));
    }
    if command.has_subcommands() {
        let commands = rendered(&|out| man.render_subcommands_section(out));
        sections.push(commands.replacen(".SH SUBCOMMANDS", ".SH COMMANDS", 1));
    }
    sections.push(after.exit_status.render());
    if std::ptr::eq(command, whole) {
        sections.push(files().render());
    }
    sections.push(after.examples.render());
    sections.push(see_also(command, whole).render());
    let preamble = Roff::new().render();
    let body: String = sections.iter().map(|section| tidied(section, &preamble)).collect();
    [preamble, title, body].concat()
}

/// The line that begins a page.
fn title(name: &str, section: u8, whole: &Command, date: &str) -> String {
    let version = whole.get_version().unwrap_or_default();
    // The macro has its arguments by position, so an empty one needs its quotes.
    format!(".TH {name} {section} \"{date}\" \"Telltale {version}\" \"Telltale\"\n")
}

/// How the command is called, as its help has it.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let called = command.get_bin_name().unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(called), roman(usage.strip_prefix(called).unwrap_or(usage))]);
    roff
}

/// A section without what linters of pages complain of.
fn tidied(section: &str, preamble: &str) -> String {
    // Each piece brings the lines that define the apostrophe; once is enough.
    let section = section.replace(preamble, "");
    // An empty line breaks the line already.
    let section = section.replace("\n.br\n\n.br\n", "\n.br\n");
    escaped(&section)
}

/// Not every formatter knows in which encoding its input is.
fn escaped(text: &str) -> String {
    let escaped = |letter: char| match letter.is_ascii() {
        true => String::from(letter),
        false => format!("\\[u{:04X}]", u32::from(letter)),
    };
    text.chars().map(escaped).collect()
}

/// What follows the options in a help text, as sections.
#[derive(Default)]
struct After {
    description: Roff,
    exit_status: Roff,
    examples: Roff,
}

impl After {
    fn of(command: &Command) -> Self {
        let mut after = Self::default();
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for paragraph in text.split("\n\n").map(|text| text.trim_matches('\n')) {
            if let Some(words) = paragraph.strip_prefix(EXIT_STATUS) {
                after.exit_status.control("SH", ["EXIT STATUS"]);
                lay_out(&mut after.exit_status, words);
            } else if let Some(lines) = EXAMPLES.iter().find_map(|it| paragraph.strip_prefix(it)) {
                after.examples.control("SH", ["EXAMPLES"]);
                lay_out(&mut after.examples, lines.trim_start_matches('\n'));
            } else if !paragraph.is_empty() {
                after.description.control("PP", []);
                lay_out(&mut after.description, paragraph);
            }
        }
        after
    }
}

/// Lines that are indented stay as they are; others are filled.
fn lay_out(roff: &mut Roff, paragraph: &str) {
    let mut is_kept = false;
    for line in paragraph.lines() {
        let keep = line.starts_with(' ');
        if keep != is_kept {
            roff.control(if keep { "nf" } else { "fi" }, []);
            is_kept = keep;
        }
        roff.text([roman(line)]);
    }
    if is_kept {
        roff.control("fi", []);
    }
}

fn files() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["FILES"]);
    for (path, meaning) in FILES {
        roff.control("TP", []);
        roff.text([italic(path)]);
        roff.text([roman(meaning)]);
    }
    roff
}

/// The page above this one and those beside it, or those below the first one.
fn see_also(command: &Command, whole: &Command) -> Roff {
    let own = name(command);
    let mut names: Vec<&str> = all(whole).into_iter().map(name).filter(|it| *it != own).collect();
    if !std::ptr::eq(command, whole) {
        let is_near = |it: &&str| own.starts_with(*it) || it.starts_with(own);
        names.retain(is_near);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let mut words = Vec::new();
    for name in names {
        let comma = if words.is_empty() { "" } else { ", " };
        words.extend([roman(comma), bold(name), roman("(1)")]);
    }
    roff.text(words);
    roff
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn a_date_is_that_of_the_build_or_none() {
        assert_eq!(date(Some("1795221296")), "2026-11-21");
        for none in [None, Some(""), Some("soon"), Some("99999999999999999999")] {
            assert_eq!(date(none), "");
        }
    }
}
