//! Devices that have something wrong with them as a whole: firmware that has stopped, a chip that vanished.

use std::fs;

use super::appearance::is_well;
use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

/// Fires at once, so that no test waits.
const RULES: &str = "\
[[alerts.rule]]
name = \"heartbeat_stopped\"
for_seconds = 0
clear_for_seconds = 0
[[alerts.rule]]
name = \"device_vanished\"
for_seconds = 0
clear_for_seconds = 0
";

/// Devices and what the column of faults says of each.
const FAULTS: &str = "[...document.querySelectorAll('#devices tbody tr')].map((row) => {
    const cell = row.querySelector('[data-column=Fault]');
    return row.dataset.key + ':' + (cell.hidden ? 'hidden' : cell.textContent);
}).join('|')";

const FACTS: &str = "document.getElementById('panel-facts').innerText";

fn shows(browser: &mut Browser, faults: [&str; 4]) {
    let names = ["251732099", "251732099R", "2517320d4", "2517320d4R"];
    let row = |(name, fault): (&str, &str)| format!("{name}:{fault}");
    let expected: Vec<String> = names.into_iter().zip(faults).map(row).collect();
    browser.until(&format!("({FAULTS}).startsWith('{}')", expected.join("|")));
}

fn details(browser: &mut Browser, device: &str) -> String {
    browser.value(&format!("document.querySelector('#devices tr[data-key=\"{device}\"]').click()"));
    browser.until("document.getElementById('panel').open");
    let facts = browser.text(FACTS);
    browser.value("document.getElementById('panel-close').click()");
    browser.until("!document.getElementById('panel').open");
    facts
}

#[test]
fn stopped_firmware_and_a_vanished_chip_are_named_and_their_end_is_seen() {
    let test = "page::faulty::stopped_firmware_and_a_vanished_chip_are_named";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("t3000");
    fixture.serve("0.2", true, RULES);
    fixture.open(browser, Some(TOKEN));
    shows(browser, ["hidden"; 4]);
    assert!(!details(browser, "251732099").contains("fault"));

    // Its heartbeats no longer count.
    fixture.machine.pause();
    shows(browser, ["heartbeat stopped", "", "heartbeat stopped", ""]);
    let hint = "document.querySelector('#devices td[data-column=Fault]').title";
    assert!(
        browser.text(hint).starts_with("its heartbeat stands still at "),
        "{}",
        browser.text(hint)
    );
    let facts = details(browser, "251732099");
    assert!(facts.contains("its heartbeat stands still at "), "{facts}");
    assert!(facts.contains("reset it with `tt-smi -r 0`"), "{facts}");

    let listed = fixture.root.join("sys/class/tenstorrent/tenstorrent!1");
    let elsewhere = fixture.root.join("gone");
    fs::rename(&listed, &elsewhere).unwrap();
    shows(browser, ["heartbeat stopped", "", "vanished", "vanished"]);
    let facts = details(browser, "2517320d4");
    assert!(facts.contains("the driver does not list it any more"), "{facts}");
    browser.until("document.getElementById('alert-list').innerText.includes('device_vanished')");
    let alerts = browser.text("document.getElementById('alert-list').innerText");
    assert!(alerts.contains("heartbeat_stopped"), "{alerts}");
    let count = browser.text("document.getElementById('source-count').textContent");
    assert!(count.starts_with("5 faults, "), "{count}");
    for (name, width, phone) in [("faults-screen", 1280, false), ("faults-phone", 390, true)] {
        browser.window(width, 900, phone);
        is_well(browser, name);
        browser.keep_picture(name);
    }
    browser.window(1280, 900, false);
    browser.value("document.getElementById('filter').focus()");
    browser.write("fault == vanished");
    browser.until("document.getElementById('device-count').textContent === '2 of 8'");
    browser.value("document.getElementById('filter').value = ''");
    browser.value("document.getElementById('filter').dispatchEvent(new Event('input'))");

    fs::rename(&elsewhere, &listed).unwrap();
    fixture.machine.resume();
    shows(browser, ["hidden"; 4]);
    browser.until("document.getElementById('alerts').hidden");
    assert_eq!(browser.complaints, Vec::<String>::new());
}
