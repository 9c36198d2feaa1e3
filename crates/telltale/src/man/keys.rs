//! `telltale.toml(5)`, from the table of keys in docs/serve.md, which a test compares with the keys that there are.

use clap_mangen::roff::{Roff, bold, italic, roman};

const PAGE: &str = include_str!("../../../../docs/serve.md");
const SYNOPSIS: [&str; 2] = ["/etc/telltale/telltale.toml", "~/.config/telltale/telltale.toml"];
const DESCRIPTION: [&str; 2] = [
    "The configuration of telltale-serve(1), in TOML. A key with dots is in tables: grpc.listen is the key listen in the \
     table [grpc]. Unknown keys are refused.",
    "The second file has precedence over the first, variables over files, and command-line options over variables. \
     telltale-config(1) checks a file, and shows what holds and where it comes from.",
];

/// A row of the table.
struct DocumentedKey {
    path: String,
    variable: String,
    default: String,
    meaning: String,
}

/// The page; `head` is the first line of all pages, with the title.
pub(super) fn page(head: String) -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]);
    roff.text([roman("telltale.toml - configuration of the Telltale node service")]);
    roff.control("SH", ["SYNOPSIS"]);
    for (number, path) in SYNOPSIS.into_iter().enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        roff.text([italic(path)]);
    }
    roff.control("SH", ["DESCRIPTION"]);
    for (number, paragraph) in DESCRIPTION.into_iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(paragraph)]);
    }
    roff.control("SH", ["KEYS"]);
    for key in keys() {
        roff.control("TP", []);
        let default = match key.default.as_str() {
            "" => String::new(),
            default => format!(" = {default}"),
        };
        roff.text([bold(key.path), roman(default)]);
        roff.text([roman(format!("{} ({})", key.meaning, key.variable))]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("telltale-serve"), roman("(1), "), bold("telltale-config"), roman("(1)")]);
    head + &roff.to_roff()
}

/// The rows that have a key and its variable.
fn keys() -> impl Iterator<Item = DocumentedKey> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.filter_map(|row| {
        let mut cells = row.splitn(4, '|').map(|cell| plain(cell.trim()));
        let (path, variable) = (cells.next()?, cells.next()?);
        let (default, meaning) = (cells.next()?, cells.next()?);
        variable.starts_with("TELLTALE_").then_some(DocumentedKey {
            path,
            variable,
            default,
            meaning,
        })
    })
}

/// Markdown's text without marks: of a link, what is shown.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        let parts = link.split_once("](").and_then(|(shown, target)| {
            let (_, behind) = target.split_once(')')?;
            Some((shown, behind))
        });
        let Some((shown, behind)) = parts.filter(|(shown, _)| !shown.contains(']')) else {
            let end = rest.len() - link.len();
            text.push_str(&rest[..end]);
            rest = link;
            continue;
        };
        text.push_str(before);
        text.push_str(shown);
        rest = behind;
    }
    (text + rest).replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::{keys, plain};

    #[test]
    fn links_are_their_text_and_lists_stay() {
        assert_eq!(plain("in `[a]`, ([b.md](b.md#c)) or `[]`"), "in [a], (b.md) or []");
    }

    #[test]
    fn the_table_is_found() {
        let keys: Vec<_> = keys().collect();
        assert!(keys.len() > 50, "{}", keys.len());
        let key = keys.iter().find(|key| key.path == "grpc.listen").unwrap();
        assert_eq!(key.default, "[\"unix:telemetry.sock\"]");
    }
}
