//! The site has every document, and each of its links leads to something in it.

use std::collections::BTreeSet;

use telltale_harness::Scratch;
use xtask::repository::{self, SourceFile};
use xtask::{site, tidy};

#[test]
fn every_document_is_in_it_and_every_link_leads_somewhere() {
    let (root, scratch) = (repository::root(), Scratch::new());
    let files = repository::files(&root).unwrap();
    site::assemble(&root, &files, scratch.path()).unwrap();
    let assembled = repository::files(&scratch.join("src")).unwrap();
    let paths: BTreeSet<&str> = assembled.iter().map(|file| file.path.as_str()).collect();
    let documents = files.iter().map(|file| file.path.as_str()).filter(|path| {
        let is_page = path.starts_with("docs/") && path.ends_with(".md");
        is_page || ["README.md", "ARCHITECTURE.md", "deploy/README.md"].contains(path)
    });
    let absent: Vec<&str> = documents.filter(|path| !paths.contains(path)).collect();
    assert_eq!(absent, [""; 0], "docs/SUMMARY.md, or a page in it, has to link to these");
    // Code that pages name without a link is not in it.
    let found = tidy::links::check(&assembled);
    let broken: Vec<String> =
        found.iter().map(ToString::to_string).filter(|text| text.contains("the link")).collect();
    assert_eq!(broken, [""; 0]);
}

#[test]
fn the_list_of_pages_is_seen_from_the_root() {
    let list = "# A\n\n- [One](one.md)\n  - [Two](../TWO.md)\n";
    assert_eq!(site::from_root(list), "# A\n\n- [One](docs/one.md)\n  - [Two](TWO.md)\n");
}

#[test]
fn what_pages_link_to_is_a_part_and_nothing_else() {
    let file = SourceFile::new;
    let files = [
        file("docs/SUMMARY.md", "[One](one.md)"),
        file("docs/one.md", "[two](../a/two.rs#x) [web](https://example.org) `docs/three.md`"),
        file("docs/three.md", ""),
        file("a/two.rs", ""),
    ];
    let parts: Vec<String> = site::parts(&files).into_iter().collect();
    assert_eq!(parts, ["a/two.rs", "docs/SUMMARY.md", "docs/one.md"]);
}
