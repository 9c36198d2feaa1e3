//! Lengths of files and functions.
//!
//! A function over the limit must be listed in `xtask/ratchet.toml` with its exact length and a
//! reason; when it gets shorter, the entry must follow. So the list can only shrink.

use serde::Deserialize;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::parsed::{is_test_only, line_range, parse};
use crate::repository::SourceFile;

/// Lines a file may have, not counting its inline test modules.
pub const MAX_FILE_LINES: usize = 600;

/// Lines a function may have, from its signature to its closing brace.
pub const MAX_FUNCTION_LINES: usize = 70;

/// Where functions over the limit are listed.
pub const RATCHET: &str = "xtask/ratchet.toml";

/// The list of functions over the limit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ratchet {
    #[serde(default)]
    function: Vec<Allowed>,
}

/// One function that may be too long.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    file: String,
    name: String,
    lines: usize,
    reason: String,
}

/// One function found.
#[derive(Debug)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// Finds source files that are too long.
#[must_use]
pub fn check_files(files: &[SourceFile]) -> Vec<Finding> {
    let is_source = |file: &&SourceFile| {
        let endings = [".rs", ".c", ".h", ".cpp", ".hpp", ".py", ".sh"];
        endings.iter().any(|ending| file.path.ends_with(ending)) && !file.is_generated()
    };
    files
        .iter()
        .filter(is_source)
        .map(|file| (file, file.text.lines().count().saturating_sub(inline_test_lines(file))))
        .filter(|(_, lines)| *lines > MAX_FILE_LINES)
        .map(|(file, lines)| {
            let message = format!("{lines} lines, more than {MAX_FILE_LINES}: split it by subject");
            Finding::whole(&file.path, message)
        })
        .collect()
}

fn inline_test_lines(file: &SourceFile) -> usize {
    let Some(parsed) = file.is_rust().then(|| parse(file).ok()).flatten() else { return 0 };
    let modules = parsed.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if is_test_only(&module.attrs) => Some(line_range(module)),
        _ => None,
    });
    modules.map(|(first, last)| last - first + 1).sum()
}

/// Finds functions that are too long, and entries of the ratchet that no longer hold.
#[must_use]
pub fn check_functions(files: &[SourceFile]) -> Vec<Finding> {
    let ratchet = match files.iter().find(|file| file.path == RATCHET) {
        None => Ratchet::default(),
        Some(file) => match toml::from_str(&file.text) {
            Ok(ratchet) => ratchet,
            Err(error) => return vec![Finding::whole(RATCHET, format!("is wrong: {error}"))],
        },
    };
    let mut findings = Vec::new();
    let mut used = vec![false; ratchet.function.len()];
    for file in files.iter().filter(|file| file.is_rust() && !file.is_generated()) {
        match functions(file) {
            Err(finding) => findings.push(finding),
            Ok(functions) => {
                let long = functions.iter().filter(|one| one.lines > MAX_FUNCTION_LINES);
                findings.extend(long.filter_map(|one| judge(&file.path, one, &ratchet, &mut used)));
            }
        }
    }
    let unused = ratchet.function.iter().zip(&used).filter(|(_, used)| !**used);
    findings.extend(unused.map(|(entry, _)| {
        let message = format!("{} in {} is not too long: drop the entry", entry.name, entry.file);
        Finding::whole(RATCHET, message)
    }));
    findings
}

fn judge(path: &str, found: &Function, ratchet: &Ratchet, used: &mut [bool]) -> Option<Finding> {
    let Function { name, line, lines } = found;
    let entry = ratchet
        .function
        .iter()
        .position(|entry| entry.file == path && entry.name == *name)
        .inspect(|index| used[*index] = true)
        .map(|index| &ratchet.function[index]);
    let message = match entry {
        None => format!("{name} has {lines} lines, more than {MAX_FUNCTION_LINES}: split it"),
        Some(entry) if entry.reason.trim().is_empty() => format!("{name} needs a reason"),
        Some(entry) if *lines > entry.lines => {
            format!("{name} grew from {} to {lines} lines: split it", entry.lines)
        }
        Some(entry) if *lines < entry.lines => {
            format!("{name} shrank to {lines} lines: write that into {RATCHET}")
        }
        Some(_) => return None,
    };
    Some(Finding::at(path, *line, message))
}

fn functions(file: &SourceFile) -> Result<Vec<Function>, Finding> {
    let mut found = Functions(Vec::new());
    found.visit_file(parse(file)?);
    Ok(found.0)
}

struct Functions(Vec<Function>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (line, _) = line_range(signature);
        let (_, last) = line_range(body);
        let name = signature.ident.to_string();
        self.0.push(Function { name, line, lines: last - line + 1 });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
