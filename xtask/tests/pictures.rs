//! Pictures of the documents are replaced by those that were made, all or none.

use std::fs;
use std::time::{Duration, SystemTime};

use telltale_harness::Scratch;
use xtask::pictures::replace;

#[test]
fn pictures_of_the_documents_are_replaced_all_or_none() {
    let (documents, made) = (Scratch::new(), Scratch::new());
    let begun = SystemTime::now() - Duration::from_secs(60);
    for name in ["a.png", "b.png", "serve.md"] {
        fs::write(documents.join(name), "old").unwrap();
    }
    for name in ["a.png", "other.png", "serve.md"] {
        fs::write(made.join(name), "new").unwrap();
    }
    let read = |name: &str| fs::read_to_string(documents.join(name)).unwrap();
    let refused = replace(documents.path(), made.path(), begun).unwrap_err();
    assert!(refused.to_string().starts_with("b.png was not made"), "{refused}");
    assert_eq!(read("a.png"), "old");

    fs::write(made.join("b.png"), "new").unwrap();
    let future = SystemTime::now() + Duration::from_secs(60);
    assert!(replace(documents.path(), made.path(), future).is_err(), "they are of an earlier time");
    let names = replace(documents.path(), made.path(), begun).unwrap();
    assert_eq!(names, ["a.png", "b.png"]);
    assert_eq!([read("a.png"), read("b.png"), read("serve.md")], ["new", "new", "old"]);
    assert!(!documents.join("other.png").exists());
}
