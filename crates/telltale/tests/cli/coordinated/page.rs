//! The coordinator's page in a browser.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use telltale_harness::wait_until;

use super::{Fixture, TOKEN};
use crate::cli::command::TIMEOUT;
use crate::cli::page::browser::Browser;

const ASKS: &str = "document.getElementById('access').open";
const LIVE: &str = "document.getElementById('connection').dataset.state === 'live'";

/// A matrix as a coordinator tells one: node b is slow with everybody, and one pair is new.
const MATRIX: &str = "{
  nodes: ['a', 'b<i>', 'c'], left_out: 0, at_unix_ms: 0,
  cells: [
    {from: 0, to: 1, usual_ns: 2000000, now_ns: 3100000, times: 1.55, is_slow: true},
    {from: 1, to: 0, usual_ns: 1000, now_ns: 9999000, times: 9999, is_slow: true},
    {from: 0, to: 2, usual_ns: 1000, now_ns: 1000, times: 1, is_slow: false},
    {from: 2, to: 0, usual_ns: 0, now_ns: 1000, is_slow: false},
  ],
}";

#[test]
fn the_page_asks_for_the_token_and_shows_what_the_command_shows() {
    let Some(mut browser) = Browser::start("cli::coordinated::page") else { return };
    let mut fixture = Fixture::new();
    fixture.attend(&["node-a", "node-b", "node-c"]);
    fixture.until_it_runs();
    fixture.kill("node-b");
    fixture.until_it_runs();

    browser.open(&fixture.http);
    browser.until("document.getElementById('problem').textContent.includes('token is needed')");
    let shown = browser.text("document.querySelector('main').innerText");
    assert!(!shown.contains("Nodes") && !shown.contains("node-a"), "{shown}");
    assert_eq!(browser.text("document.getElementById('connection').textContent"), "token needed");
    // A user who closes the dialog is not asked again, and finds the button.
    assert_eq!(browser.value(ASKS), true);
    browser.press("Escape");
    let before = browser.requests.len();
    wait_until("the page to ask again", TIMEOUT, || {
        browser.value(ASKS) == false && browser.requests.len() > before + 1
    });
    assert_eq!(browser.value(ASKS), false);
    // The browser itself complains of each refusal; nothing else does.
    assert!(browser.complaints.iter().all(|text| text.contains("401")), "{:?}", browser.complaints);
    browser.complaints.clear();

    browser.value("document.getElementById('token-button').click()");
    browser.write("another-word-that-is-wrong");
    browser.press("Enter");
    // A wrong one is asked for again, where the focus is.
    browser.until("document.getElementById('access-why').textContent.includes('is not the')");
    browser.until(ASKS);
    browser.write(TOKEN);
    browser.press("Enter");
    browser.until(LIVE);
    browser.complaints.clear();
    browser.until("document.querySelectorAll('#nodes tbody tr').length === 3");
    let shown = browser.text("document.querySelector('main').innerText");
    for words in
        ["runs; epoch 2, mode recover", "node-c", "1 running", "1 of 2 ill", "answered by epoch 2"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let why = "document.querySelector('#nodes td[title]').title";
    assert_eq!(browser.text(why), "1: does not answer");
    // The newest incident is explained without being asked for.
    browser.until("!document.getElementById('incident').hidden");
    let reported = browser.text("document.getElementById('incident').innerText");
    assert!(
        reported.contains("the worker of rank 1 on node-b failed: signal 9 (KILL)"),
        "{reported}"
    );
    assert!(!browser.text("location.href").contains(TOKEN));
    // It goes on to ask.
    let before = browser.text("document.getElementById('connection').textContent");
    let later = format!("document.getElementById('connection').textContent !== '{before}'");
    browser.until(&later);
    assert_eq!(browser.complaints, Vec::<String>::new());
    assert!(browser.requests.iter().all(|address| address.starts_with(&fixture.http)));
}

/// Tables that are cut off, and words in them that are broken where they should not be.
const CUT: &str = "[
    ...[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth),
    ...[...document.querySelectorAll('td.whole')].filter((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return range.getClientRects().length !== 1;
    }),
].map((one) => one.textContent)";

#[test]
fn where_no_token_is_wanted_none_is_asked_for_and_a_phone_shows_every_row() {
    let Some(mut browser) = Browser::start("cli::coordinated::phone") else { return };
    let mut fixture = Fixture::with(false);
    fixture.attend_and_run();
    let killed = fixture.holder(1);
    fixture.kill(&killed);
    fixture.until_it_runs();
    browser.open(&fixture.http);
    browser.until(LIVE);
    browser.until("document.querySelectorAll('#nodes tbody tr').length === 4");
    browser.until("document.querySelectorAll('#incidents tbody tr').length === 1");
    assert_eq!(browser.value(ASKS), false);
    assert_eq!(browser.value("document.getElementById('token-button').checkVisibility()"), false);
    for (width, height, phone) in [(1280, 900, false), (400, 800, true)] {
        browser.window(width, height, phone);
        browser.keep_picture(&format!("cluster-{width}"));
        assert_eq!(browser.value(CUT), serde_json::json!([]), "at {width}");
        let shown = "[...document.querySelectorAll('#nodes th')].filter((one) => \
             one.checkVisibility()).map((one) => one.textContent).join(' ')";
        let more = browser.text(shown).contains("Address");
        assert_eq!(more, !phone, "at {width}");
    }
    // What is done has the whole width.
    let least = "document.querySelector('#incidents td.line').clientWidth > 300";
    assert_eq!(browser.value(least), true);
}

#[test]
fn the_matrix_can_be_read_without_colours_and_by_who_sees_few() {
    let Some(mut browser) = Browser::start("cli::coordinated::matrix") else { return };
    let fixture = Fixture::new();
    browser.open(&fixture.http);
    browser.value(&format!(
        "import('/assets/matrix.js').then(({{matrix}}) => {{
            document.getElementById('incident').hidden = document.getElementById('map').hidden = false;
            matrix(document.getElementById('matrix'), document.getElementById('legend'), {MATRIX});
        }})"
    ));
    let rows = browser.value(
        "[...document.querySelectorAll('#matrix tr')].map((row) => \
         [...row.cells].map((cell) => cell.textContent))",
    );
    let expected = serde_json::json!([
        ["", "0", "1", "2"],
        ["a 0", "", "1.55!", "1.00"],
        ["b<i> 1", ">999!", "", ""],
        ["c 2", "?", "", ""],
    ]);
    assert_eq!(rows, expected);
    let title = browser.text("document.querySelector('#matrix td.slow').title");
    assert_eq!(title, "a to b<i>: 3.1 ms, usually 2.0 ms");
    for scheme in ["light", "dark"] {
        browser.prefer(&[("prefers-color-scheme", scheme)]);
        // The contrast of WCAG 2, of each step's ink on its ground; and each step is brighter.
        let steps = browser.value(
            "[...document.querySelectorAll('#legend li')].map((step) => {
                const style = getComputedStyle(step);
                const light = (colour) => {
                    const parts = colour.match(/\\d+/g).map((part) => part / 255);
                    const linear = parts.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
                };
                const [ground, ink] = [light(style.backgroundColor), light(style.color)];
                return [ground, (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05)];
            })",
        );
        let steps: Vec<(f64, f64)> = serde_json::from_value(steps).unwrap();
        assert_eq!(steps.len(), 6);
        assert!(steps.iter().all(|(_, contrast)| *contrast >= 4.5), "{scheme}: {steps:?}");
        assert!(steps.is_sorted_by(|one, next| one.0 < next.0), "{scheme}: {steps:?}");
    }
}

/// What is shown of the steps.
const STEPS: &str = "document.getElementById('steps').innerText";
/// Texts of the drawings that are outside of them.
const OUTSIDE: &str = "[...document.querySelectorAll('svg text')].filter((one) => {
    const [own, all] = [one.getBoundingClientRect(), one.closest('svg').getBoundingClientRect()];
    return own.left < all.left || own.right > all.right || own.top < all.top || own.bottom > all.bottom;
}).map((one) => one.textContent)";

/// Where a browser finds a page, and nothing else.
fn served(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{page}").as_bytes());
        }
    });
    address
}

#[test]
fn training_steps_are_shown_by_the_page_and_by_a_file_without_a_coordinator() {
    let Some(mut browser) = Browser::start("cli::coordinated::steps") else { return };
    let mut fixture = Fixture::with(false);
    let slow = fixture.attend_and_train();
    let file = fixture.place.join("report.html");
    let written = fixture.cluster(&["report", "--page", file.to_str().unwrap()]);
    assert_eq!(written.status, Some(0), "{written:?}");
    let addresses =
        [(fixture.http.clone(), "page"), (served(fs::read_to_string(file).unwrap()), "file")];
    for (address, name) in addresses {
        browser.requests.clear();
        browser.open(&address);
        browser.until("document.querySelector('#steps polyline') !== null");
        let shown = browser.text(STEPS);
        for words in [
            &format!("Rank 1 on {slow} computes 2.50 times as long as ranks that do the same work"),
            "Where the time goes, of one step",
            "Slow ranks",
            "Who waits for whom",
            // 30 ms of 51.
            "59%",
        ] {
            assert!(shown.contains(words), "{name}: {words}: {shown}");
        }
        for (width, height, phone) in [(1280, 1400, false), (400, 1600, true)] {
            browser.window(width, height, phone);
            browser.keep_picture(&format!("steps-{name}-{width}"));
            assert_eq!(browser.value(CUT), serde_json::json!([]), "{name} at {width}");
            assert_eq!(browser.value(OUTSIDE), serde_json::json!([]), "{name} at {width}");
        }
        // The file needs nothing else.
        assert!(name == "page" || browser.requests == [address], "{:?}", browser.requests);
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}
