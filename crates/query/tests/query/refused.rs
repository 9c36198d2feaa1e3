//! What is no query, and how that is reported.

use telltale_query::{MAX_DEPTH, MAX_PATTERNS, MAX_QUERY_BYTES, Query};

#[test]
fn an_error_points_at_the_column_and_says_what_could_stand_there() {
    let cases = [
        ("dram >", 6, "the query ends here, but a number is expected"),
        ("dram > 2Gi", 7, "`dram` is an amount of memory (B, KiB, MiB, GiB,"),
        ("dram > much", 7, "and `much` is not"),
        ("temperature > 80GiB", 14, "`temperature` is a temperature (C, °C), and `80GiB` is not"),
        ("dram ~ /2/", 5, "cannot be compared by `~`"),
        ("name > train", 5, "`name` is text and cannot be compared by `>`"),
        ("usr == root", 0, "there is no field `usr`; did you mean `user`?"),
        ("temp > 80", 0, "there is no field `temp`; did you mean `temperature`?"),
        ("up > 5m", 0, "there is no field `up`; did you mean `uptime`?"),
        ("zzzzzz == 1", 0, "there is no field `zzzzzz`"),
        ("pid == abc", 7, "`pid` is a number, and `abc` is not"),
        ("state == asleep", 9, "one of alive, dead, hidden, and `asleep` is not"),
        ("user", 4, "a comparison such as `==`"),
        ("user == root pid == 1", 13, "`and`, `or` or the end is expected"),
        ("(user == root", 13, "`)`, `and` or `or` is expected"),
        ("user == 'root", 8, "does not end; add '"),
        ("name ~ /(/", 7, "this pattern cannot be used"),
        ("name ~ /x{9999}{9999}/", 7, "this pattern cannot be used"),
        ("and", 0, "a field, `not`, `(`, a text or a /pattern/ is expected"),
        ("user in root", 8, "`(` is expected after `in`"),
        ("user in (root pid", 14, "`,` or `)` is expected"),
        ("user is here", 8, "`absent` or `known` is expected"),
        ("'ü' & pid", 4, "`&` stands here, but"),
        ("pid == 1e400", 7, "and `1e400` is not"),
    ];
    for (text, column, words) in cases {
        let error = Query::parse(text).expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn a_terminal_shows_the_place_and_is_not_steered() {
    let text = "pid == \u{1b}[2J";
    let error = Query::parse(text).unwrap_err();
    let shown = error.pointed(text);
    assert!(shown.starts_with("pid == ?[2J\n       ^\ncolumn 8: "), "{shown}");
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    let long = "x".repeat(MAX_QUERY_BYTES + 1);
    assert!(Query::parse(&long).unwrap_err().to_string().contains("longer than"));
    let patterns = |count: usize| vec!["/x/"; count].join(" or ");
    assert!(Query::parse(&patterns(MAX_PATTERNS)).is_ok());
    let error = Query::parse(&patterns(MAX_PATTERNS + 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 113: this is one pattern more than the 16 that a query can have"
    );
    for (open, close) in [("(", ")"), ("not ", ""), ("!", "")] {
        let nested =
            |depth: usize| format!("{}pid == 1{}", open.repeat(depth), close.repeat(depth));
        assert!(Query::parse(&nested(MAX_DEPTH - 1)).is_ok());
        let error = Query::parse(&nested(MAX_DEPTH)).unwrap_err();
        assert!(error.to_string().contains("deep within each other"), "{error}");
    }
}
