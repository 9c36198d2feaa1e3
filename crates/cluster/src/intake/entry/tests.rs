//! Posts as the original sends them, as ours are, and malformed ones.

use proptest::prelude::{Strategy, any, any_with, prop, prop_oneof, proptest};
use serde_json::{Value, json};

use super::*;
use crate::latency::Direction;
use crate::latency::record::Stage;

/// As the original's send is, with all of its fields.
const SEND: &str = r#"{"opType":"send","remoteRank":1,"bytes":4096,"context_rank":0,"context_size":4,
    "startTime":1702339200000000,"endTime":1702339200000250,"filename":"gloo/transport/tcp/buffer.cc",
    "finished":true,"timestamp":1.5}"#;

/// As the original's collective is, when it begins.
const ALL_REDUCE: &str = r#"{"opType":"allreduce","algorithm":"ring","dataType":"float32","count":1024,
    "rootRank":-1,"context_rank":2,"context_size":4,"startTime":77,"endTime":0,
    "filename":"gloo/allreduce.cc","finished":false}"#;

fn parse(text: &str) -> Post {
    Post::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?} of {text}"))
}

fn record(entry: &PostEntry) -> CollectiveRecord {
    let EntryContent::Operation(record) = entry.reported else { panic!("{entry:?}") };
    record
}

#[test]
fn the_original_s_records_are_read_unchanged() {
    let expected = CollectiveRecord {
        operation: OperationType::Transfer {
            direction: Direction::Send,
            remote_rank: 1,
            bytes: 4096,
        },
        group: None,
        context_rank: 0,
        global_rank: None,
        context_size: 4,
        stage: Stage::Ended { start_us: 1_702_339_200_000_000, end_us: 1_702_339_200_000_250 },
        sequence: None,
        step: None,
        waited: Waited::default(),
    };
    assert_eq!(record(&parse(SEND).entries[0]), expected);
    let expected = CollectiveRecord {
        operation: OperationType::Collective { collective: Collective::AllReduce, size: 1024 },
        context_rank: 2,
        stage: Stage::Began,
        ..expected
    };
    assert_eq!(record(&parse(ALL_REDUCE).entries[0]), expected);
}

#[test]
fn what_a_transfer_waited_for_is_read() {
    let with = |fields: &str| SEND.replacen('{', &format!("{{{fields},"), 1);
    let cases = [
        (r#""late":true"#, Waited { late: true, overlapped: false }),
        (r#""late":false,"overlapped":true"#, Waited { late: false, overlapped: true }),
    ];
    for (fields, expected) in cases {
        assert_eq!(record(&parse(&with(fields)).entries[0]).waited, expected, "{fields}");
    }
}

#[test]
fn one_object_an_array_and_lines_are_the_same() {
    let (send, reduce) = (SEND.replace('\n', " "), ALL_REDUCE.replace('\n', " "));
    let expected = parse(&format!("[{send},{reduce}]"));
    assert_eq!((expected.entries.len(), expected.refused), (2, 0));
    assert_eq!(parse(&format!("{send}\n{reduce}\n")), expected);
    assert_eq!(parse(&format!("\r\n {send}\r\n\r\n{reduce}")), expected);
    assert_eq!(parse(&send).entries, expected.entries[..1]);
}

#[test]
fn our_own_fields_name_group_epoch_and_rank() {
    let text = r#"[
        {"opType":"group","group":"tp_0","ranks":[4,6],"epoch":3},
        {"opType":"irecv","group":"tp_0","remoteRank":1,"bytes":8,"context_rank":0,"context_size":2,
            "startTime":1,"endTime":2,"finished":true,"global_rank":4,"epoch":3,"sequence":12},
        {"opType":"all_gather_into_tensor","group":7,"bytes":9,"count":2,"context_rank":0,
            "context_size":2,"startTime":1},
        {"opType":"checkpoint","global_rank":4,"finished":false}]"#;
    let post = parse(text);
    let group = GroupId::of_name("tp_0");
    let reported = EntryContent::Group { group, members: vec![Rank(4), Rank(6)] };
    assert_eq!(post.entries[0], PostEntry { epoch: Some(Epoch::new(3)), reported });
    let receive = record(&post.entries[1]);
    assert_eq!(receive.sequence, Some(12));
    let (direction, remote_rank) = (Direction::Receive, 1);
    assert_eq!(receive.operation, OperationType::Transfer { direction, remote_rank, bytes: 8 });
    assert_eq!((receive.group, receive.global_rank), (Some(group), Some(Rank(4))));
    let gather = record(&post.entries[2]);
    assert_eq!(gather.group, Some(GroupId::new(7)));
    let collective = Collective::AllGather;
    assert_eq!(gather.operation, OperationType::Collective { collective, size: 9 });
    let reported = EntryContent::Checkpoint { rank: Rank(4), finished: false };
    assert_eq!(post.entries[3], PostEntry { epoch: None, reported });
}

#[test]
fn operations_are_known_by_many_names() {
    let cases = [
        ("send", RecordKind::Transfer(Direction::Send)),
        ("isend", RecordKind::Transfer(Direction::Send)),
        ("ALLREDUCE", RecordKind::Collective(Collective::AllReduce)),
        ("allreduce_coalesced", RecordKind::Collective(Collective::AllReduce)),
        ("AllGather", RecordKind::Collective(Collective::AllGather)),
        ("_all_gather_base", RecordKind::Collective(Collective::AllGather)),
        ("reduce", RecordKind::Collective(Collective::Reduce)),
        ("reduce_scatter_tensor", RecordKind::Collective(Collective::ReduceScatter)),
        ("ReduceScatter", RecordKind::Collective(Collective::ReduceScatter)),
        ("monitored_barrier", RecordKind::Collective(Collective::Other)),
        ("barrier", RecordKind::Collective(Collective::Barrier)),
        ("alltoall", RecordKind::Collective(Collective::Other)),
        ("", RecordKind::Collective(Collective::Other)),
    ];
    for (name, expected) in cases {
        assert_eq!(format!("{:?}", RecordKind::of(name)), format!("{expected:?}"), "{name}");
    }
}

#[test]
fn an_entry_that_makes_no_sense_is_refused_alone() {
    use EntryRefused::{Missing, OutOfRange};
    let cases = [
        (json!({}), Missing("opType")),
        (json!({"opType": "send"}), Missing("remoteRank")),
        (json!({"opType": "send", "remoteRank": -1}), OutOfRange("remoteRank")),
        (json!({"opType": "send", "remoteRank": 1_u64 << 32}), OutOfRange("remoteRank")),
        (json!({"opType": "send", "remoteRank": 1.5}), OutOfRange("remoteRank")),
        (json!({"opType": "recv", "remoteRank": 1, "bytes": u64::MAX}), OutOfRange("bytes")),
        (json!({"opType": "recv", "remoteRank": 1, "bytes": null}), Missing("bytes")),
        (json!({"opType": "barrier"}), Missing("context_rank")),
        (json!({"opType": "barrier", "context_rank": 0}), Missing("context_size")),
        (json!({"opType": "barrier", "finished": true, "endTime": 1}), Missing("startTime")),
        (json!({"opType": "barrier", "epoch": -1}), OutOfRange("epoch")),
        (json!({"opType": "group", "ranks": []}), Missing("group")),
        (json!({"opType": "group", "group": "", "ranks": []}), Missing("group")),
        (json!({"opType": "group", "group": 0, "ranks": []}), Missing("group")),
        (json!({"opType": "group", "group": "a"}), Missing("ranks")),
        (json!({"opType": "group", "group": "a", "ranks": [0, -1, 2]}), OutOfRange("ranks")),
        (json!({"opType": "checkpoint"}), Missing("global_rank")),
    ];
    for (bad, expected) in cases {
        let post = parse(&format!("[{bad},{SEND}]"));
        assert_eq!((post.entries.len(), post.refused), (1, 1), "{bad}");
        assert_eq!(post.first_refused, Some(expected), "{bad}");
    }
    let members: Vec<usize> = (0..=MAX_MEMBERS_PER_GROUP).collect();
    let group = json!({"opType": "group", "group": "a", "ranks": members});
    assert_eq!(parse(&group.to_string()).first_refused, Some(OutOfRange("ranks")));
}

/// Whether a reader of one object survives a number in each form that JSON has for one.
fn survives_any_number(read: impl Fn(&str) + std::panic::RefUnwindSafe) -> bool {
    ["1", "1.0", "1e0", "-1", "1e30", "null"].into_iter().all(|number| {
        let text = SEND.replace(r#""remoteRank":1"#, &format!(r#""remoteRank":{number}"#));
        std::panic::catch_unwind(|| read(&text)).is_ok()
    })
}

#[test]
fn a_number_of_any_form_is_read_or_refused() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let ours = survives_any_number(|text| {
        let post = parse(text);
        assert_eq!(post.entries.len() + post.refused, 1);
    });
    // The original takes what it wants a whole number to be, and ends where it is none.
    let theirs = survives_any_number(|text| {
        let value: Value = serde_json::from_str(text).unwrap();
        value["remoteRank"].as_i64().unwrap();
    });
    std::panic::set_hook(hook);
    assert_eq!((ours, theirs), (true, false));
}

#[test]
fn what_is_no_such_json_is_refused_as_a_whole() {
    let deep = "[".repeat(100_000);
    let deep_field = format!(r#"{{"opType":"send","x":{}"#, "[".repeat(100_000));
    let many = "{}".repeat(MAX_ENTRIES_PER_POST + 1);
    let twice = r#"{"opType":"send","opType":"recv"}"#;
    let bodies = [
        "nonsense",
        "{",
        "[{]",
        "[{}] x",
        "[1]",
        "[[{}]]",
        "1",
        "null",
        "\"{}\"",
        "{} nonsense",
        r#"{"opType":1}"#,
        r#"{"opType":"send","remoteRank":"1"}"#,
        r#"{"opType":"send","bytes":1e999}"#,
        r#"{"group":1.5}"#,
        &deep,
        &deep_field,
        &many,
        twice,
    ];
    for body in bodies {
        let shown: String = body.chars().take(60).collect();
        assert!(matches!(Post::parse(body.as_bytes()), Err(PostRefused::Malformed(_))), "{shown}");
    }
    assert!(matches!(Post::parse(b"{\"opType\":\"\xff\"}"), Err(PostRefused::Malformed(_))));
    for body in ["", " \r\n\t", "[]"] {
        assert!(matches!(Post::parse(body.as_bytes()), Err(PostRefused::Empty)), "{body}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(|one| json!(one)),
        any::<i64>().prop_map(|one| json!(one)),
        (-2..6_i64).prop_map(|one| json!(one)),
        any::<u64>().prop_map(|one| json!(one)),
        any::<f64>().prop_map(|one| json!(one)),
        any_with::<String>(".{0,8}".into()).prop_map(|one| json!(one)),
        prop::sample::select(vec!["send", "recv", "allreduce", "group", "checkpoint"])
            .prop_map(|one| json!(one)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::Array))
}

fn object() -> impl Strategy<Value = Value> {
    let names = vec![
        "opType",
        "remoteRank",
        "bytes",
        "count",
        "context_rank",
        "context_size",
        "startTime",
        "endTime",
        "finished",
        "group",
        "epoch",
        "global_rank",
        "ranks",
        "filename",
        "x",
    ];
    let field = (prop::sample::select(names), value());
    prop::collection::vec(field, 0..16).prop_map(|fields| {
        Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Post::parse(&body);
    }

    #[test]
    fn any_part_of_a_post_is_read_or_refused(cut in 0..SEND.len(), at in 0..SEND.len(), byte: u8) {
        let mut body = SEND.as_bytes().to_vec();
        body[at] = byte;
        body.truncate(cut);
        let _ = Post::parse(&body);
    }

    #[test]
    fn any_objects_are_counted_or_refused(objects in prop::collection::vec(object(), 1..6)) {
        let lines: String = objects.iter().map(|one| format!("{one}\n")).collect();
        let array = Post::parse(Value::Array(objects.clone()).to_string().as_bytes());
        let stream = Post::parse(lines.as_bytes());
        match (array, stream) {
            (Ok(array), Ok(stream)) => {
                assert_eq!(array, stream);
                assert_eq!(array.entries.len() + array.refused, objects.len());
            }
            (Err(_), Err(_)) => {}
            (array, stream) => panic!("{array:?} but {stream:?}"),
        }
    }
}
