//! The header against those of releases: what was compiled with one of them goes on with this one. A structure may get
//! members at its end (its `struct_size` says which are there), an enumeration constants; all else stays as it is.

use std::collections::BTreeMap;
use std::fs;

use super::installed::here;

/// What a header declares, by name: the text, with the members of a structure or an enumeration apart.
type Declarations = BTreeMap<String, (String, Vec<String>)>;

fn declarations(header: &str) -> Declarations {
    let text = without_comments(header);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ").replace("extern \"C\" {", "");
    let (mut found, mut begun, mut depth) = (Vec::new(), String::new(), 0);
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            // That of `extern "C"` closes nothing.
            '}' if depth == 0 => continue,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                found.push(std::mem::take(&mut begun));
                continue;
            }
            _ => {}
        }
        begun.push(letter);
    }
    found.iter().map(|declaration| declared(declaration)).collect()
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    kept + rest
}

fn declared(declaration: &str) -> (String, (String, Vec<String>)) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let name =
        |text: &str| text.split(' ').next_back().unwrap().trim_matches(['*', '(']).to_owned();
    if let Some((before, rest)) = declaration.split_once('{') {
        let (members, after) = rest.rsplit_once('}').unwrap();
        let between = if before.contains("enum") { ',' } else { ';' };
        let members = members.split(between).map(words).filter(|member| !member.is_empty());
        return (name(&words(after)), (words(before), members.collect()));
    }
    let text = words(declaration);
    let end = if text.starts_with("typedef") { text.find(")(") } else { text.find('(') };
    let called = name(&text[..end.unwrap_or(text.len())]);
    (called, (text, Vec::new()))
}

/// What of a release is not there any more, or is something else now.
fn broken(released: &Declarations, now: &Declarations) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, (text, members)) in released {
        match now.get(name) {
            None => broken.push(format!("{name} is not declared")),
            Some((other, _)) if other != text => broken.push(format!("{other}, and was {text}")),
            Some((_, others)) => {
                let is_enumeration = text.contains("enum ");
                let stays = |(at, member): (usize, &String)| match is_enumeration {
                    true => others.contains(member),
                    false => others.get(at) == Some(member),
                };
                let changed = members.iter().enumerate().find(|member| !stays(*member));
                broken.extend(changed.map(|(_, member)| format!("{member} of {name} is another")));
            }
        }
    }
    broken
}

#[test]
fn what_releases_declare_is_declared_the_same() {
    let now = declarations(&fs::read_to_string(here().join("include/telltale.h")).unwrap());
    assert!(now.len() > 40, "{:?}", now.keys());
    let releases: Vec<_> = fs::read_dir(here().join("abi")).unwrap().flatten().collect();
    assert!(!releases.is_empty());
    for release in releases {
        let released = declarations(&fs::read_to_string(release.path()).unwrap());
        assert!(released.contains_key("telltale_allocate"));
        assert_eq!(broken(&released, &now), Vec::<String>::new(), "{:?}", release.file_name());
    }
}

#[test]
fn what_breaks_a_compiled_program_is_found() {
    const RELEASED: &str = "\
        typedef enum kind_e { ONE = 1, /* a comment; */ TWO = 2 } kind_e;\n\
        typedef struct options_s { size_t struct_size; const char *name; } options_s;\n\
        typedef void (*on_problem)(void *context);\n\
        void *open_it(const options_s *options, on_problem call);\n";
    let released = declarations(RELEASED);
    assert_eq!(
        released.keys().collect::<Vec<_>>(),
        ["kind_e", "on_problem", "open_it", "options_s"]
    );
    for (from, to, count) in [
        ("/* a comment; */", "/* another */", 0),
        ("TWO = 2", "TWO = 2, THREE = 3", 0),
        ("*name;", "*name; int more;", 0),
        ("void *open_it", "int shut(void); void *open_it", 0),
        ("TWO = 2", "TWO = 3", 1),
        ("TWO = 2", "", 1),
        ("size_t struct_size;", "size_t struct_size; int more;", 1),
        ("const char *name;", "char *name;", 1),
        ("(void *context)", "(void *context, int more)", 1),
        ("void *open_it", "const void *open_it", 1),
        ("on_problem call", "on_problem call, int more", 1),
        ("void *open_it", "void *open_one", 1),
    ] {
        let changed = RELEASED.replacen(from, to, 1);
        let found = broken(&released, &declarations(&changed));
        assert_eq!(found.len(), count, "{from} becomes {to}: {found:?}");
    }
}
