//! What a text of C may read beside itself, as far as its directives say: headers by their name in
//! quotes, headers whose name is made by macros, and files that the assembler puts in.
//!
//! Only the compiler knows which directives it follows. So all count, those in comments and behind
//! `#if 0` as well: too many cost time, and one too few would be missed for ever.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use memchr::{memchr2, memmem};

/// See [`includes`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Includes {
    /// The names in quotes.
    pub(super) names: Vec<OsString>,
    /// There are others, which nothing here says: a name is made by macros, or a file is embedded.
    pub(super) has_unknown: bool,
}

/// What a directive or a question names.
enum DirectiveOperand {
    Quoted(OsString),
    /// In angle brackets: it is not searched for beside the text.
    Angled,
    Unknown,
}

/// What the directives of a text include, and ask whether it is there.
pub(super) fn includes(text: &[u8]) -> Includes {
    let mut found = Includes::default();
    let text = joined(text);
    let lines = text.split(|byte| *byte == b'\n');
    for rest in lines.filter_map(directive) {
        let word = word(rest);
        match word {
            b"include" | b"include_next" | b"import" => found.add(named(&rest[word.len()..])),
            b"embed" => found.has_unknown = true,
            _ => found.add_questions(rest),
        }
    }
    found
}

/// Whether the assembler may read a file for this text: then the text does not say all of what is
/// compiled. Directives of the assembler are written in small letters and in capitals.
pub(super) fn reads_in_assembly(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    contains(&text, b"incbin") || {
        contains(&text, b"asm") && places(&text, b".include").any(|place| is_assembly(&text, place))
    }
}

/// Whether another file may belong to a text.
pub(super) fn may_include(text: &[u8]) -> bool {
    let reads = |text: &[u8]| {
        let text = text.to_ascii_lowercase();
        [&b"include"[..], b"embed", b"import", b"incbin"].iter().any(|word| contains(&text, word))
    };
    reads(text) || reads(&joined(text))
}

impl Includes {
    fn add(&mut self, named: DirectiveOperand) {
        match named {
            DirectiveOperand::Quoted(name) => self.names.push(name),
            DirectiveOperand::Angled => {}
            DirectiveOperand::Unknown => self.has_unknown = true,
        }
    }

    /// Adds what a line asks `__has_include` and its like. Who only asks whether these are defined has
    /// no parenthesis behind them.
    fn add_questions(&mut self, line: &[u8]) {
        for place in places(line, b"__has_include") {
            let rest = &line[place + b"__has_include".len()..];
            let rest = without_blanks(rest.strip_prefix(b"_next").unwrap_or(rest));
            if let Some(rest) = rest.strip_prefix(b"(") {
                self.add(named(rest));
            }
        }
        self.has_unknown |= contains(line, b"__has_embed");
    }
}

/// The text with lines that go on put together.
fn joined(text: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = memchr2(b'\\', b'?', rest) {
        let (before, found) = rest.split_at(place);
        joined.extend_from_slice(before);
        rest = next_line(found).unwrap_or_else(|| {
            joined.push(found[0]);
            &found[1..]
        });
    }
    joined.extend_from_slice(rest);
    joined
}

/// The line that a line goes on with, behind the mark that says so.
fn next_line(text: &[u8]) -> Option<&[u8]> {
    let behind = [&b"\\"[..], b"??/"].into_iter().find_map(|mark| text.strip_prefix(mark))?;
    let blanks = behind.iter().take_while(|byte| b" \t\r\x0b\x0c".contains(byte)).count();
    behind[blanks..].strip_prefix(b"\n")
}

/// What is behind the mark of a directive in a line, if it is one. A comment may come before it.
fn directive(line: &[u8]) -> Option<&[u8]> {
    let hash = line.iter().position(|byte| *byte == b'#');
    let digraph = places(line, b"%:").next();
    let (start, end) = match (hash, digraph) {
        (Some(hash), Some(digraph)) if digraph < hash => (digraph, digraph + 2),
        (Some(hash), _) => (hash, hash + 1),
        (None, Some(digraph)) => (digraph, digraph + 2),
        (None, None) => return None,
    };
    let before = &line[..start];
    let behind_comment = places(before, b"*/").last().map_or(before, |place| &before[place + 2..]);
    without_blanks(behind_comment).is_empty().then(|| without_blanks(&line[end..]))
}

fn named(rest: &[u8]) -> DirectiveOperand {
    let rest = without_blanks(rest);
    if rest.starts_with(b"<") {
        return DirectiveOperand::Angled;
    }
    let name = rest.strip_prefix(b"\"").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        Some(&rest[..end])
    });
    match name {
        Some(name) if !name.contains(&0) => {
            DirectiveOperand::Quoted(OsString::from_vec(name.to_vec()))
        }
        _ => DirectiveOperand::Unknown,
    }
}

/// What follows behind blanks and comments.
fn without_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let Some(comment) = text.strip_prefix(b"/*") else { return text };
        let Some(end) = places(comment, b"*/").next() else { return text };
        text = &comment[end + 2..];
    }
}

fn word(text: &[u8]) -> &[u8] {
    let length = text.iter().take_while(|byte| is_of_word(**byte)).count();
    &text[..length]
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether `.include` at this place can be a directive of the assembler, and not a member of a struct.
fn is_assembly(text: &[u8], place: usize) -> bool {
    let (before, behind) = (&text[..place], &text[place + b".include".len()..]);
    // Behind `\n` and `\t` a line begins in a string.
    let is_member = match before {
        [.., b'\\', b'n' | b't'] => false,
        [.., last] => is_of_word(*last) || b")]".contains(last),
        [] => false,
    };
    let ends = behind.first().is_none_or(|next| b" \t\n\\\"".contains(next));
    !is_member && ends && !without_blanks(behind).starts_with(b"=")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memmem::find(text, word).is_some()
}

/// Where a word is in a text.
fn places<'a>(text: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memmem::find_iter(text, word)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::{includes, may_include, reads_in_assembly};

    #[test]
    fn names_in_quotes_are_found() {
        let text = "#include \"a.h\"\n # include_next\t\"b/c.h\"\n#if __has_include(\"d.h\")\n\
            #include <math.h>\n// include \"\n\"\n%:include/* one */\"e.h\" // two\n\
            /* three */ # /**/ inc\\\nlude \"f\\\n.h\"\n#define HAS __has_include_next ( \"g.h\" )\n\
            #if defined(__has_include) && __has_include(<x.h>)\n#ifdef __has_include\n\
            f(\"#include\", \"x.h\");\n";
        let found = includes(text.as_bytes());
        assert_eq!(found.names, ["a.h", "b/c.h", "d.h", "e.h", "f.h", "g.h"]);
        assert!(!found.has_unknown);
        let found = includes(b"#inc\\ \r\nlude \"\xE9\\\n.h\"");
        assert_eq!(found.names, [OsStr::from_bytes(b"\xE9.h")]);
    }

    #[test]
    fn a_name_that_is_made_by_macros_is_unknown() {
        for (text, expected) in [
            ("#include HEADER", true),
            ("# \\\n include TEXT(a.h)", true),
            ("one\n/* two\n*/ #include HEADER\n", true),
            ("#if __has_include(HEADER)", true),
            ("#embed \"a.bin\"", true),
            ("#include", true),
            ("#define HEADER \"a.h\"", false),
            ("#define INCLUDE(x) include x", false),
            ("#pragma include HEADER", false),
            ("x # include HEADER", false),
        ] {
            assert_eq!(includes(text.as_bytes()).has_unknown, expected, "{text}");
        }
    }

    #[test]
    fn a_file_that_the_assembler_reads_is_seen() {
        for (text, expected) in [
            ("__asm__(\".incbin \\\"a\\\"\");", true),
            ("TEXT(.INCBIN \"a\")", true),
            ("asm(\"nop\\n.include \\\"a\\\"\");", true),
            ("asm(\"nop;.Include\\t\" FILE);", true),
            ("asm(R\"(\n.include \"a\")\");", true),
            ("asm(\"nop\"); x.include = 1;", false),
            ("asm(\"nop\"); one = (struct x){ .include = 1, .included = 2 };", false),
            ("asm(\"nop\"); f(x).include \\\n++;", false),
            ("one = \".include \";", false),
        ] {
            assert_eq!(reads_in_assembly(text.as_bytes()), expected, "{text}");
            assert!(may_include(text.as_bytes()), "{text}");
        }
        assert!(may_include(b"#inc??/\nlude \"a\""));
        assert!(!may_include(b"KERNEL_MAIN {}"));
    }
}
