use std::os::unix::fs::symlink;

use rustix::io::Errno;
use telltale_harness::Scratch;
use telltale_schema::reading::Absence;

use super::{MAX_ATTRIBUTE_BYTES, Tree, Unreadable};

#[test]
fn files_are_read_with_their_limits() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("d")).unwrap();
    std::fs::write(scratch.join("d/short"), "900\n").unwrap();
    std::fs::write(scratch.join("d/full"), vec![b'x'; MAX_ATTRIBUTE_BYTES]).unwrap();
    std::fs::write(scratch.join("d/long"), vec![b'x'; MAX_ATTRIBUTE_BYTES + 1]).unwrap();
    let tree = Tree::open(scratch.path()).unwrap();
    let directory = tree.root().directory("d").unwrap();
    assert_eq!(directory.attribute("short").unwrap(), b"900\n");
    assert_eq!(directory.attribute("full").unwrap().len(), MAX_ATTRIBUTE_BYTES);
    let too_long = Unreadable::TooLong { limit: MAX_ATTRIBUTE_BYTES };
    assert_eq!(directory.attribute("long"), Err(too_long));
    assert_eq!(directory.file("long", MAX_ATTRIBUTE_BYTES), Err(too_long));
    assert_eq!(directory.file("long", MAX_ATTRIBUTE_BYTES + 1).unwrap().len(), 4097);
    assert_eq!(directory.beginning("long", 3).unwrap(), b"xxx");
    assert_eq!(directory.beginning("short", 300).unwrap(), b"900\n");
    let mut names = directory.names().unwrap();
    names.sort();
    assert_eq!(names, ["full", "long", "short"]);
    assert_eq!(directory.names().unwrap().len(), 3, "a directory can be listed again");
    let up_to = [2, 3].map(|limit| directory.names_up_to(limit).unwrap().len());
    assert_eq!(up_to, [2, 3], "the limit is of names");
}

#[test]
fn errors_become_reasons() {
    let scratch = Scratch::new();
    let tree = Tree::open(scratch.path()).unwrap();
    let cases = [
        ("ENODATA", Absence::Resetting),
        ("ENODEV", Absence::Gone),
        ("ENXIO", Absence::Gone),
        ("EACCES", Absence::Permission),
        ("EPERM", Absence::Permission),
        ("EIO", Absence::Failed),
        ("ENOENT", Absence::Unsupported),
        ("ENONSENSE", Absence::Unsupported),
    ];
    for (name, absence) in cases {
        symlink(format!("errno:{name}"), scratch.join(name)).unwrap();
        assert_eq!(tree.root().attribute(name).unwrap_err().absence(), absence, "{name}");
    }
    assert_eq!(tree.root().attribute("none"), Err(Unreadable::Errno(Errno::NOENT)));
    assert_eq!(tree.root().attribute("."), Err(Unreadable::Errno(Errno::ISDIR)));
}

#[test]
fn only_an_emulated_tree_has_errors_in_links() {
    let scratch = Scratch::new();
    symlink("errno:EIO", scratch.join("link")).unwrap();
    let tree = Tree::open(std::path::Path::new("/")).unwrap();
    let relative = scratch.join("link");
    let relative = relative.to_str().unwrap().trim_start_matches('/');
    assert_eq!(tree.root().attribute(relative), Err(Unreadable::Errno(Errno::NOENT)));
    assert!(!tree.is_emulated());
}

#[test]
fn a_missing_root_is_one_sentence_with_a_remedy() {
    let error = Tree::open(std::path::Path::new("/nowhere/at/all")).unwrap_err();
    assert!(error.to_string().contains("--root"), "{error}");
}
