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
        let is_page = is_page && *path != "docs/SUMMARY.md";
        is_page || ["README.md", "ARCHITECTURE.md", "deploy/README.md"].contains(path)
    });
    let absent: Vec<&str> = documents
        .filter(|path| !paths.contains(path.replace("README", "index").as_str()))
        .collect();
    assert_eq!(absent, [""; 0], "docs/SUMMARY.md, or a page in it, has to link to these");
    // Code that pages name without a link is not in it.
    let found = tidy::links::check(&assembled);
    let broken: Vec<String> =
        found.iter().map(ToString::to_string).filter(|text| text.contains("the link")).collect();
    assert_eq!(broken, [""; 0]);
    // mdBook renders what is listed.
    let list = std::fs::read_to_string(scratch.join("src/SUMMARY.md")).unwrap();
    let pages = paths.iter().filter(|path| path.ends_with(".md") && **path != "SUMMARY.md");
    let unlisted: Vec<&str> =
        pages.filter(|path| !list.contains(&format!("]({path})"))).copied().collect();
    assert_eq!(unlisted, [""; 0]);
}

#[test]
fn links_of_finished_pages_that_lead_nowhere_are_found() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("a")).unwrap();
    let page = "<a href=\"b.html#here\"></a><a href=\"../c.html\"></a><a href=\"https://x\"></a>";
    std::fs::write(scratch.join("a/a.html"), page).unwrap();
    std::fs::write(scratch.join("a/b.html"), "<h2 id=\"here\"></h2>").unwrap();
    std::fs::write(scratch.join("c.html"), "<a href=\"#none\"></a>").unwrap();
    assert_eq!(site::broken_links(scratch.path()).unwrap(), ["c.html: #none"]);
    std::fs::remove_file(scratch.join("c.html")).unwrap();
    std::fs::write(scratch.join("a/b.html"), "<h2 id=\"there\"></h2>").unwrap();
    let broken = site::broken_links(scratch.path()).unwrap();
    assert_eq!(broken, ["a/a.html: b.html#here", "a/a.html: ../c.html"]);
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
