use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use telltale_harness::Scratch;

use super::super::Configuration;

/// The first key and the words of each refusal.
fn reported(text: &str, files: bool) -> Vec<(&'static str, String)> {
    let configuration: Configuration = toml::from_str(text).expect("each key is right by itself");
    let found = if files { configuration.unusable() } else { configuration.contradictions() };
    found.into_iter().map(|refusal| (refusal.keys[0], refusal.why)).collect()
}

#[test]
fn keys_that_contradict_each_other_are_reported_without_a_poll_at_any_file() {
    let cases: [(&str, &[(&str, &str)]); 14] = [
        ("", &[]),
        ("[grpc]\ncertificate = \"/none\"", &[("grpc.certificate", "needs both")]),
        ("[grpc]\nkey = \"/none\"", &[("grpc.certificate", "needs both")]),
        ("[grpc]\nclient_authority = \"/none\"", &[("grpc.certificate", "needs both")]),
        ("[grpc]\nlisten = [\"0.0.0.0:1\"]", &[("grpc.listen", "readable on the network")]),
        ("[grpc]\nlisten = [\"0.0.0.0:1\"]\ncertificate = \"/c\"\nkey = \"/k\"", &[]),
        ("[http]\nlisten = [\"[::]:9435\"]", &[("http.listen", "there is no token")]),
        ("token_file = \"/none\"\n[http]\nlisten = [\"0.0.0.0:9435\"]", &[]),
        ("[http]\nlisten = [\"0.0.0.0:9435\"]\npublic = true", &[]),
        ("[http]\nlisten = [\"[::1]:9435\", \"127.0.0.1:9435\"]", &[]),
        (
            "[grpc]\nlisten = [\"127.0.0.1:9435\"]",
            &[("http.listen", "127.0.0.1:9435 beside 127.0.0.1:9435")],
        ),
        (
            "[http]\npublic = true\nlisten = [\"0.0.0.0:7\"]\n[grpc]\nlisten = [\"127.0.0.1:7\"]",
            &[("http.listen", "0.0.0.0:7 beside 127.0.0.1:7")],
        ),
        ("[http]\nlisten = [\"127.0.0.1:0\"]\n[grpc]\nlisten = [\"127.0.0.1:0\"]", &[]),
        (
            "[legacy]\nsocket = \"/run/x\"\n[http]\nlisten = [\"unix:/run/x\"]",
            &[("legacy.socket", "unix:/run/x beside unix:/run/x")],
        ),
    ];
    for (text, expected) in cases {
        let found = reported(text, false);
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for ((key, why), (of, words)) in found.iter().zip(expected) {
            assert!(key == of && why.contains(words), "{text}: {found:?}");
        }
    }
}

fn is_private(path: &Path, text: &str, mode: u32) -> String {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

#[test]
fn files_and_directories_that_cannot_be_used_are_reported_and_none_is_made() {
    let place = Scratch::new();
    let at = |name: &str| place.join(name).display().to_string();
    let open = is_private(&place.join("open"), "a-word-of-sixteen", 0o644);
    let secret = is_private(&place.join("secret"), "a-word-of-sixteen", 0o600);
    fs::create_dir(place.join("dir")).unwrap();
    let (none, dir) = (at("none"), at("dir"));
    let hook = "[alerts.webhook]\nurl = \"https://127.0.0.1:1/\"";
    let cases: Vec<(String, &[(&str, &str)])> = vec![
        (format!("token_file = {secret:?}\nstate_dir = {:?}", at("new/state")), &[]),
        (format!("token_file = {none:?}"), &[("token_file", "cannot read the token file")]),
        (format!("token_file = {open:?}"), &[("token_file", "chmod 600")]),
        (format!("state_dir = {open:?}"), &[("state_dir", "cannot use the state directory")]),
        (format!("state_dir = \"{open}/below\""), &[("state_dir", "Not a directory")]),
        (format!("state_dir = {open:?}\nhistory.enabled = false"), &[]),
        (format!("root = {open:?}"), &[("root", "")]),
        (
            format!("[grpc]\ncertificate = {none:?}\nkey = {secret:?}"),
            &[("grpc.certificate", "cannot read")],
        ),
        (
            format!("[grpc]\ncertificate = {secret:?}\nkey = {secret:?}"),
            &[("grpc.certificate", "there is no certificate in ")],
        ),
        (
            format!("{hook}\nauthorization_file = {open:?}\nca_file = {secret:?}"),
            &[
                ("alerts.webhook.authorization_file", "others can read it"),
                ("alerts.webhook.ca_file", "no certificate"),
            ],
        ),
        (format!("[alerts.webhook]\nauthorization_file = {open:?}"), &[]),
        (
            String::from("[otlp]\nendpoint = \"http://127.0.0.1:9\"\nheaders = [\"nameless\"]"),
            &[("otlp.endpoint", "is no header")],
        ),
        (format!("[http]\nlisten = [\"unix:{dir}\"]"), &[("http.listen", "a directory of user")]),
        (format!("[legacy]\nsocket = \"{open}\""), &[("legacy.socket", "a file of user")]),
        (format!("[legacy]\nsocket = \"{none}/s\""), &[("legacy.socket", "No such file")]),
        (
            format!("runtime_dir = {none:?}\n[http]\nlisten = [\"unix:h\"]"),
            &[("http.listen", "cannot open the runtime directory")],
        ),
        (format!("runtime_dir = {none:?}"), &[]),
        (format!("runtime_dir = {dir:?}\n[http]\nlisten = [\"unix:h\"]"), &[]),
    ];
    let before = fs::read_dir(place.path()).unwrap().count();
    for (text, expected) in cases {
        let found = reported(&text, true);
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for ((key, why), (of, words)) in found.iter().zip(expected) {
            assert!(key == of && why.contains(words), "{text}: {found:?}");
        }
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), before);
}
