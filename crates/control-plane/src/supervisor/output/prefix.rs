//! What stands in front of each line of a worker: text, with the worker's rank where a template has it.

use std::fmt::Write;

/// What stands in front of each line of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePrefix(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The worker's rank in the job, which may be another after a restart.
    Rank,
}

// === impl LinePrefix ===

impl LinePrefix {
    /// A prefix from a template: `${role_name}`, `${local_rank}` and `${rank}`, with or without
    /// braces, in the syntax of `string.Template.safe_substitute` of Python: `$$` is a dollar sign,
    /// and a name that is not known stays as it was written.
    #[must_use]
    pub fn from_template(template: &str, role: &str, local_rank: u32) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            let (name, end) = variable(after);
            match name {
                "$" => text.push('$'),
                "role_name" => text.push_str(role),
                "local_rank" => {
                    let _ = write!(text, "{local_rank}");
                }
                "rank" => parts.extend([Part::Text(std::mem::take(&mut text)), Part::Rank]),
                _ => {
                    text.push('$');
                    text.push_str(&after[..end]);
                }
            }
            rest = &after[end..];
        }
        text.push_str(rest);
        parts.push(Part::Text(text));
        Self(parts)
    }

    /// The prefix for a worker of this rank.
    pub(super) fn of(&self, rank: u32) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Rank => rank.to_string(),
        };
        self.0.iter().map(text).collect()
    }
}

/// The name that follows a dollar sign, and where the rest begins. Nothing if there is no name.
fn variable(after: &str) -> (&str, usize) {
    if after.starts_with('$') {
        return ("$", 1);
    }
    let (name, braces) = match after.strip_prefix('{') {
        Some(inside) => (inside.split_once('}').map_or("", |(name, _)| name), 2),
        None => {
            let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
            (after.split(|letter| !is_part(letter)).next().unwrap_or_default(), 0)
        }
    };
    (name, if name.is_empty() { 0 } else { name.len() + braces })
}

#[cfg(test)]
mod tests {
    use telltale_harness::python_with;

    use super::*;

    const TEMPLATES: [&str; 9] = [
        "[${role_name}${local_rank}]:",
        "$role_name/$rank: ",
        "${rank}${rank}",
        "$$5 $ ${} ${rank",
        "${other} $other $rank_0",
        "no names",
        "é$rank→",
        "${ rank} ${rank}}",
        "",
    ];

    #[test]
    fn a_template_is_filled_in() {
        let prefix = LinePrefix::from_template("[$role_name $local_rank of ${rank}]", "trainer", 1);
        assert_eq!(prefix.of(5), "[trainer 1 of 5]");
        assert_eq!(prefix.of(13), "[trainer 1 of 13]");
    }

    #[test]
    fn templates_are_those_of_python() {
        let test = "supervisor::output::prefix::templates_are_those_of_python";
        let Some(mut python) = python_with(test, "string") else { return };
        let program = "\
import sys, string
for template in sys.argv[1:]:
    print(string.Template(template).safe_substitute(role_name='r', rank=12, local_rank=3))
";
        let printed = python.args(["-c", program]).args(TEMPLATES).output().expect("Python runs");
        let printed = String::from_utf8(printed.stdout).expect("prefixes are text");
        let ours = TEMPLATES.map(|template| LinePrefix::from_template(template, "r", 3).of(12));
        assert_eq!(printed.lines().collect::<Vec<_>>(), ours);
    }
}
