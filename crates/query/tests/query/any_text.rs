//! Any typed text is read or refused, and changes nothing else.

use proptest::prelude::*;
use telltale_harness::rounds;
use telltale_query::{Field, Query, complete};

use crate::query::machine::snapshot;

/// Pieces of queries, and of what is none.
fn piece() -> impl Strategy<Value = String> {
    let names: Vec<String> = Field::all().iter().map(|field| field.name.to_owned()).collect();
    let signs = [
        "and", "or", "not", "is", "in", "absent", "(", ")", ",", "==", "!=", "<", ">=", "~", "!~",
        "!", "/x/", "'y'", "2GiB", "80C", "7", "alive", "root", "\"", "/", "\\", "&&", "||", "é",
        "\u{0}",
    ];
    let signs: Vec<String> = signs.iter().map(ToString::to_string).collect();
    prop_oneof![
        proptest::sample::select(names),
        proptest::sample::select(signs),
        any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    (proptest::collection::vec(piece(), 0..24), prop_oneof![Just(" "), Just("")])
        .prop_map(|(pieces, between)| pieces.join(between))
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(rounds(2_000, 20_000))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_text_is_read_or_refused_within_itself(text in text()) {
        match Query::parse(&text) {
            Err(error) => {
                prop_assert!(error.column <= text.chars().count());
                prop_assert!(error.pointed(&text).lines().count() >= 3);
            }
            Ok(query) => {
                let all = snapshot();
                let some = query.select(&all);
                let opposite = Query::parse(&format!("not ({text})"));
                if text.trim().is_empty() {
                    prop_assert_eq!(&some, &all);
                } else if let Ok(opposite) = opposite {
                    // No row is in both; a row may be in neither.
                    let rest = opposite.select(&all);
                    let rows = |snapshot: &telltale_schema::snapshot::Snapshot| -> Vec<(Option<u32>, Option<String>)> {
                        snapshot.processes.iter().flat_map(|process| {
                            let names: Vec<_> = process.devices.iter().map(|held| Some(snapshot.devices[held.device].id.clone())).collect();
                            let names = if names.is_empty() { vec![None] } else { names };
                            names.into_iter().map(|name| (process.pid, name))
                        }).collect()
                    };
                    let (some, rest, all) = (rows(&some), rows(&rest), rows(&all));
                    prop_assert!(some.iter().all(|row| !rest.contains(row) && all.contains(row)));
                }
            }
        }
    }

    #[test]
    fn what_completes_a_query_brings_it_on(text in text()) {
        let (typed, candidates) = complete(&text);
        let letters = text.chars().count();
        prop_assert!(typed <= letters);
        let kept: String = text.chars().take(letters - typed).collect();
        for candidate in candidates {
            let longer = format!("{kept}{}", candidate.text);
            // It may not be the end yet, but what was completed is not where it fails.
            if let Err(error) = Query::parse(&longer)
                && Query::parse(&text).is_err_and(|before| before.column >= letters - typed)
            {
                prop_assert!(error.column >= letters - typed, "{longer}: {error}");
            }
        }
    }
}
