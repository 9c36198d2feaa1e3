use super::identity::Identity;
use super::numbers::Numbers;
use super::words::Cleaner;
use super::{Veil, cleaned, text};
use crate::doctor::finding::Finding;
use serde_json::{Value, json};
use telltale_schema::snapshot::Snapshot;

/// People and a host that the texts below name.
fn identity() -> Identity {
    let mut identity = Identity::default();
    identity.add("host", "rack7-node3");
    identity.add_people(
        "root:x:0:0:root:/root:/bin/sh\nsshd:x:105:1:,,,:/run/sshd:/bin/false\n\
         mmuster:x:1001:1001:Maria Muster,,,:/data/people/mmuster:/bin/sh\nbroken\n",
    );
    identity
}

fn clean(text: &str) -> String {
    Cleaner::new(&identity(), Numbers::default()).text(text)
}

#[test]
fn whoever_or_wherever_it_is_becomes_a_number() {
    let cases = [
        ("on rack7-node3, RACK7-NODE3.", "on host-1, host-1."),
        ("of mmuster (Muster)", "of user-1 (user-2)"),
        ("kept by user 1001 and user 0", "kept by user uid-1 and user 0"),
        ("cannot open /home/mmuster/x.key", "cannot open /home/user-1/path-1"),
        (
            "cannot read /data/people/anna/token: denied",
            "cannot read /path-1/path-2/path-3/path-4: denied",
        ),
        ("/tmp/telltale-1001 has mode", "/tmp/telltale-uid-1 has mode"),
        ("/run/user/1001/telltale", "/run/user/path-1/telltale"),
        ("at 10.1.2.3:9436, fe80::1 and [2001:db8::7]:80", "at ip-1, ip-2 and ip-3"),
        ("10.1.2.3 again 10.1.2.3", "ip-1 again ip-1"),
        ("node9.lab.example.com:9436 and gpu-9:80", "host-1:9436 and host-2:80"),
        ("write to maria@example.com", "write to address-1"),
        ("link 52:54:00:12:34:56 is up", "link address-1 is up"),
        ("https://bob:hunter2@hooks.example.com/T0/B0", "https://url-1"),
        ("http://127.0.0.1:9435 is ours", "http://127.0.0.1:9435 is ours"),
        ("http://127.0.0.1:9435/?token=abc", "http://url-1"),
    ];
    for (text, expected) in cases {
        assert_eq!(clean(text), expected, "{text}");
    }
}

#[test]
fn secrets_and_numbers_of_one_device_are_hidden() {
    let cases = [
        ("api_token=s3cr3t and PASSWORD=x", "api_token=left out and PASSWORD=left out"),
        ("Authorization: Bearer abc.def", "Authorization: left out left out"),
        ("the password: opensesame is wrong", "the password: left out is wrong"),
        ("value \"user \\\"hunter2\\\" typed\" is none", "value \"left out\" is none"),
        ("an open \"quote hides the rest", "an open \"left out\""),
        ("serial 1654321098765432", "serial id-1"),
        ("GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c", "id-1"),
        ("boot 0f8fad5b-d9cb-469f-a165-70867728950e", "boot id-1"),
        ("machine 5e2f3a9cc6d94ab0a7bb36c2a3d1f4e8", "machine id-1"),
        ("ghp_Abc123Def456Ghi789", "id-1"),
        ("AKIAIOSFODNN7EXAMPLE", "id-1"),
        ("/dev/shm/tt_device_251732099_memory", "/dev/shm/path-1"),
        ("/sys/class/tenstorrent/0123456789abcdef/x", "/sys/class/tenstorrent/path-1/x"),
    ];
    for (text, expected) in cases {
        assert_eq!(clean(text), expected, "{text}");
    }
    let long = "x".repeat(41);
    assert_eq!(clean(&long), "left out");
}

#[test]
fn what_helps_is_kept() {
    let kept = [
        "2 found, all with sensors",
        "nvidia: no driver of NVIDIA's is loaded (there is no /proc/driver/nvidia)",
        "Linux has no pidfds (ENOSYS): ends of processes are seen late",
        "/run/tt, kept by user 0",
        "install -d -o telltale -g telltale -m 3777 /run/tt",
        "/run/tt/metrics_4242.sock: refused",
        "card0/gpu_busy_percent of 0000:03:00.0",
        "/etc/telltale/telltale.toml:2:7: unknown key `alerts.webhook.url`",
        "/sys/class/tenstorrent/tenstorrent!0/tt_aiclk",
        "no libnvidia-ml.so.1; see docs/devices.md",
        "it listens on 127.0.0.1:9435, [::1]:9435 and 0.0.0.0:80",
        "journalctl -u telltale -n 50",
    ];
    for text in kept {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn any_text_can_be_cleaned() {
    let odd = [
        "",
        " ",
        "\"",
        "\\",
        "://",
        "=",
        "a=",
        "=b",
        "@",
        ":",
        "/",
        "//",
        "unix:",
        "[::",
        "é\u{202e}",
        "\n\t",
    ];
    for text in odd {
        clean(text);
    }
    assert_eq!(clean("two\nlines  here"), "two\nlines  here");
}

#[test]
fn a_kernel_may_be_named_after_its_maker() {
    let identity = identity();
    let mut cleaner = Cleaner::new(&identity, Numbers::default());
    assert_eq!(cleaner.release("6.8.0-mmuster+1"), "6.8.0-user-1+1");
    assert_eq!(cleaner.release("6.18.44-fc-v595"), "6.18.44-fc-v595");
}

#[test]
fn a_field_that_nobody_has_judged_is_left_out() {
    let mut veil = Veil { numbers: Numbers::default() };
    let value = json!({
        "new_field": "secret",
        "nested": {"list": ["secret", 7], "board_type": "n300"},
        "board_type": "not a plain secret",
        "throttled_by": {"value": ["thermal", "1234567890"], "at": 3},
        "uid": {"value": 1001, "at": 3},
        "firmware": {"secret": "1.2"},
        "secret key": 1,
    });
    let expected = json!({
        "new_field": "left out",
        "nested": {"list": ["left out", 7], "board_type": "n300"},
        "board_type": "left out",
        "throttled_by": {"value": ["thermal", "left out"], "at": 3},
        "uid": {"value": "uid-1", "at": 3},
        "firmware": "left out",
        "key-3": 1,
    });
    let veiled = veil.value(value);
    assert_eq!(veiled["key-3"].as_u64().or(veiled["key-4"].as_u64()), Some(1), "{veiled}");
    for key in ["new_field", "nested", "board_type", "throttled_by", "uid", "firmware"] {
        assert_eq!(veiled[key], expected[key], "{key}");
    }
    assert!(!veiled.to_string().contains("secret"), "{veiled}");
}

#[test]
fn names_that_the_snapshot_shows_are_in_no_finding() {
    let text_of_snapshot = r#"{"schema_version":1,"taken_at":1,"collected_in_ns":1,"devices":[],
        "processes":[{"identity":{"boot_id":"0f8fad5b-d9cb-469f-a165-70867728950e",
        "pid_namespace":1,"pid":7,"start_time_ticks":9},"pid":7,"name":"finetune",
        "command":{"value":"finetune --key hunter2","at":1},"uid":{"value":1001,"at":1},
        "user":{"value":"anna","at":1},"container":{"id":"c0ffee","engine":"docker",
        "pod_uid":"p1","pod":{"namespace":"team-blue","name":"job-x","container":"main"}},
        "state":"alive","known_by":null,"uptime_seconds":{"absent":"unknown"},"devices":[],
        "faults":{"double_frees":0,"unknown_frees":0,"reused_live_addresses":0,
        "unrecorded_events":0},"metrics":[]}],"sources":[]}"#;
    let snapshot: Snapshot = serde_json::from_str(text_of_snapshot).unwrap();
    let what = "endpoints: finetune of anna in job-x (team-blue, c0ffee) refuses mmuster";
    let findings = [Finding::partly("source", what, "ls -l /home/anna/finetune")];
    let bundle = text(&findings, &snapshot, identity());
    let secrets =
        ["finetune", "anna", "job-x", "team-blue", "c0ffee", "hunter2", "mmuster", "0f8fad5b"];
    for secret in secrets {
        assert!(!bundle.contains(secret), "{secret} is in {bundle}");
    }
    let bundle: Value = serde_json::from_str(&bundle).unwrap();
    assert_eq!(bundle["snapshot"]["processes"][0]["state"], "alive");
    assert_eq!(bundle["snapshot"]["processes"][0]["container"]["engine"], "docker");
    assert_eq!(bundle["snapshot"]["processes"][0]["pid"], 7);
    assert_eq!(bundle["findings"][0]["subject"], "source");
    let identity = identity();
    let mut cleaner = Cleaner::new(&identity, Numbers::default());
    assert_eq!(cleaned(&findings[0], &mut cleaner)["verdict"], "partly");
}
