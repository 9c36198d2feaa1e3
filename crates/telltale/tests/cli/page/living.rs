//! The page follows the machine: new values, history, alerts, and a service that goes and returns.

use super::browser::Browser;
use super::fixture::{Fixture, LIVE, TOKEN};

/// Fires as soon as a byte of DRAM is in use.
pub(super) const RULE: &str = "\
[[alerts.rule]]
name = \"anything\"
condition = \"capacity\"
severity = \"critical\"
above_ratio = 1e-12
clear_ratio = 1e-12
for_seconds = 0
clear_for_seconds = 0
";

/// Points that the plots have.
const POINTS: &str = "[...document.querySelectorAll('.plot')].reduce((sum, box) =>
    sum + box.plot.data[1].filter((known) => known !== null).length, 0)";
/// Plots in which something was drawn.
const DRAWN: &str = "[...document.querySelectorAll('.plot canvas')].filter((canvas) =>
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)).length";

#[test]
fn values_history_and_alerts_arrive_and_a_restart_is_survived() {
    let test = "page::living::values_history_and_alerts_arrive_and_a_restart_is_survived";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.work("train", "train", 0);
    fixture.serve("0.2", true, RULE);
    fixture.open(browser, Some(TOKEN));
    browser
        .until("document.querySelectorAll('#alert-list li[data-severity=critical]').length === 1");
    let alert = browser.text("document.getElementById('alerts').innerText");
    assert!(alert.contains("of the dram of device") && alert.contains("anything"), "{alert}");
    assert!(alert.contains("1 firing"), "{alert}");
    assert!(browser.text("document.title").starts_with("(1) Telltale"));

    // Values change by themselves; the row stays the same element, so focus and place stay.
    browser.value("globalThis.row = document.querySelector('#processes tbody tr')");
    let buffers = "document.querySelector('#processes td[data-column=Buffers]').textContent";
    let before = browser.text(buffers);
    browser.until(&format!("{buffers} !== '{before}'"));
    assert_eq!(browser.value("row === document.querySelector('#processes tbody tr')"), true);

    for (table, title) in [("devices", "DRAM by process"), ("processes", "DRAM")] {
        browser.value(&format!("document.querySelector('#{table} tbody .open').click()"));
        // From the history, not from what the page has seen: that would be said.
        browser.until(&format!("document.getElementById('panel-note').hidden && {POINTS} >= 2"));
        let captions = browser.text(
            "[...document.querySelectorAll('.plot figcaption')].map((one) => one.textContent).join()",
        );
        assert!(captions.starts_with(title) && captions.contains(" now, max "), "{captions}");
        let plots = browser.value("document.querySelectorAll('.plot').length");
        assert!(plots.as_u64().unwrap() >= 2, "{captions}");
        assert_eq!(browser.value(DRAWN), plots, "{captions}");
        browser.value("document.getElementById('panel-close').click()");
    }
    // Curves in rows, too: the history's at first.
    browser.until(
        "document.querySelector('#devices .trend path:last-child').getAttribute('d').length > 0",
    );
    assert_eq!(browser.complaints, Vec::<String>::new());

    fixture.end_service();
    browser.until("document.getElementById('connection').dataset.state === 'lost'");
    let state = browser.text("document.getElementById('connection').textContent");
    assert!(state.contains("trying again") && state.contains("as of"), "{state}");
    assert_eq!(browser.value("document.querySelectorAll('#processes tbody tr').length"), 1);
    fixture.serve("0.2", true, "");
    browser.until(LIVE);
    // The new service has other rules.
    browser.until("document.getElementById('alerts').hidden");
    assert!(browser.text("document.title").starts_with("Telltale"));
    let refused = |one: &String| {
        !one.contains("ERR_CONNECTION_REFUSED") && !one.contains("ERR_INCOMPLETE_CHUNKED")
    };
    assert!(!browser.complaints.iter().any(refused), "{:?}", browser.complaints);
}

#[test]
fn without_a_history_the_plots_are_of_what_the_page_has_seen() {
    let test = "page::living::without_a_history_the_plots_are_of_what_the_page_has_seen";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.work("train", "train", 0);
    fixture.serve("0.2", true, "[history]\nenabled = false\n");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length === 1");
    browser.value("document.querySelector('#devices tbody .open').click()");
    browser.until(&format!("{POINTS} >= 4"));
    let note = browser.text("document.getElementById('panel-note').textContent");
    assert!(note.contains("keeps no history") && note.contains("this page has seen"), "{note}");
}

#[test]
fn a_history_that_takes_longer_than_its_interval_is_shown() {
    let test = "page::living::a_history_that_takes_longer_than_its_interval_is_shown";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.work("train", "train", 0);
    fixture.serve("0.2", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length === 1");
    // As over a slow line, or of a machine that is out of processor time.
    browser.value(
        "globalThis.quick = globalThis.fetch;
        globalThis.fetch = async (...question) => {
            await new Promise((done) => setTimeout(done, 7000));
            return quick(...question);
        }",
    );
    browser.value("document.querySelector('#devices tbody .open').click()");
    browser.until(&format!("document.getElementById('panel-note').hidden && {POINTS} >= 2"));
}
