//! Rust sources as syntax trees and flat tokens, with line numbers.
//!
//! Comments are gone here, so a rule about code does not stumble over prose.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Item, UseTree};

use crate::finding::Finding;
use crate::repository::SourceFile;

/// The syntax tree of a Rust file, which is parsed once.
///
/// # Errors
/// A finding that names the line, when it is not Rust.
pub fn parse(file: &SourceFile) -> Result<&syn::File, Finding> {
    let parsed = file.parsed.get_or_init(|| {
        syn::parse_file(&file.text).map_err(|error| {
            Finding::at(&file.path, error.span().start().line, format!("does not parse: {error}"))
        })
    });
    parsed.as_ref().map_err(Clone::clone)
}

/// Whether an attribute list holds `#[cfg(test)]`.
#[must_use]
pub fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// The first and last line of something parsed.
#[must_use]
pub fn line_range(parsed: &impl Spanned) -> (usize, usize) {
    let span = parsed.span();
    (span.start().line, span.end().line)
}

/// The file without its inline test modules.
#[must_use]
pub fn without_tests(file: &syn::File) -> syn::File {
    let is_kept = |item: &&Item| !matches!(item, Item::Mod(module) if is_test_only(&module.attrs));
    let items = file.items.iter().filter(is_kept).cloned().collect();
    syn::File { shebang: file.shebang.clone(), attrs: file.attrs.clone(), items }
}

/// One token that is not a bracket: its text and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The token as written.
    pub text: String,
    /// Its line, counted from 1.
    pub line: usize,
}

/// All tokens of a parsed file in order, brackets opened up and documentation left out.
#[must_use]
pub fn tokens(file: &syn::File) -> Vec<Token> {
    let mut found = Vec::new();
    flatten(file.to_token_stream(), &mut found);
    found
}

fn flatten(stream: TokenStream, found: &mut Vec<Token>) {
    let mut after_doc = false;
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => flatten(group.stream(), found),
            TokenTree::Literal(_) if after_doc => {}
            TokenTree::Ident(ident) if ident == "doc" => {
                after_doc = true;
                continue;
            }
            TokenTree::Punct(equals) if after_doc && equals.as_char() == '=' => continue,
            other => found.push(Token { text: other.to_string(), line }),
        }
        after_doc = false;
    }
}

/// Every path that the file's `use` items import, spelled out, with its line.
#[must_use]
pub fn imports(file: &syn::File) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    imports_of(&file.items, &mut found);
    found
}

fn imports_of(items: &[Item], found: &mut Vec<(String, usize)>) {
    for item in items {
        match item {
            Item::Use(import) => spell_out(&import.tree, "", found),
            Item::Mod(module) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                imports_of(inner, found);
            }
            _ => {}
        }
    }
}

fn spell_out(tree: &UseTree, before: &str, found: &mut Vec<(String, usize)>) {
    let join = |name: String| {
        if before.is_empty() { name } else { format!("{before}::{name}") }
    };
    let line = tree.span().start().line;
    match tree {
        UseTree::Path(path) => spell_out(&path.tree, &join(path.ident.to_string()), found),
        UseTree::Name(name) if name.ident == "self" => found.push((before.to_owned(), line)),
        UseTree::Name(name) => found.push((join(name.ident.to_string()), line)),
        UseTree::Rename(rename) => found.push((join(rename.ident.to_string()), line)),
        UseTree::Glob(_) => found.push((join("*".to_owned()), line)),
        UseTree::Group(group) => {
            for one in &group.items {
                spell_out(one, before, found);
            }
        }
    }
}
