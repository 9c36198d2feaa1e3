//! The Dockerfile: what it runs is what the program understands.

use crate::deploy::commands::{AGENT, COORDINATOR, INSTALLED, SERVE, probes, serves};
use crate::deploy::files::text;

/// The instructions of the last stage: names, and what follows them in one line.
pub(crate) fn instructions() -> Vec<(String, String)> {
    let all = all_instructions();
    let last_stage = all.iter().rposition(|(name, _)| name == "FROM").unwrap();
    all[last_stage..].to_vec()
}

/// Those of all stages.
fn all_instructions() -> Vec<(String, String)> {
    let text = text("docker/Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let split = joined.lines().filter_map(|line| line.split_once(' '));
    split.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect()
}

/// What follows the only instruction of this name.
#[track_caller]
pub(crate) fn only(name: &str) -> String {
    let mut found = instructions().into_iter().filter(|(one, _)| one == name);
    let (_, rest) = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "two of {name}");
    rest
}

/// The words of a command in the form that no shell takes apart.
#[track_caller]
fn words(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The variables of the image.
pub(crate) fn variables() -> Vec<(String, String)> {
    let all = instructions().into_iter().filter(|(name, _)| name == "ENV");
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    all.map(|(_, rest)| owned(rest.split_once('=').unwrap())).collect()
}

/// What a container of the image runs where it names nothing else. There is no entry point: a command
/// is a program of the image and its arguments.
pub(crate) fn command() -> Vec<String> {
    assert!(instructions().iter().all(|(name, _)| name != "ENTRYPOINT"));
    words(&only("CMD"))
}

#[test]
fn the_image_serves_with_its_history_where_its_volume_is() {
    let shown = serves(&command(), &variables());
    assert_eq!(shown["state_dir"], "/var/lib/telltale");
    assert_eq!(words(&only("VOLUME")), ["/var/lib/telltale"]);
    assert_eq!(only("USER"), "4350:4350", "Kubernetes can tell a number from root");
    assert!(only("RUN").contains("--uid 4350") && only("RUN").contains("--gid 4350"));
    assert!(only("RUN").contains("-m 3777 /run/tt"));
    let port = shown["http.listen"][0].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(only("EXPOSE"), port);
    assert_eq!(only("COPY"), "--from=contents /contents/ /");
    let all = all_instructions();
    let installed = all.iter().find(|(_, rest)| rest.starts_with("install -D")).unwrap();
    let words: Vec<&str> = installed.1.split_whitespace().collect();
    assert!(words.contains(&"--target-directory=/contents/usr/bin"));
    for program in [INSTALLED, SERVE, AGENT, COORDINATOR] {
        assert!(words.contains(&program.strip_prefix("/usr/bin/").unwrap()), "{program}");
    }
}

#[test]
fn its_health_check_asks_the_service() {
    let check = only("HEALTHCHECK");
    let (options, command) = check.split_once(" CMD ").unwrap();
    assert!(options.split_whitespace().all(|option| option.starts_with("--")), "{options}");
    let [shell, dash_c, line] = &words(command)[..] else { panic!("{command}") };
    assert_eq!((shell.as_str(), dash_c.as_str()), ("/bin/sh", "-c"));
    let (probe, otherwise) = line.split_once(" || ").unwrap();
    assert_eq!(otherwise, "exit 1");
    probes(&probe.split(' ').map(str::to_owned).collect::<Vec<_>>());
}
