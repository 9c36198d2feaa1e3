//! Everything is reached and used by keyboard alone, and has a name for those who do not see it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

/// What has the focus: its id, else its text.
const FOCUSED: &str = "document.activeElement.id || document.activeElement.textContent";
/// Whether it shows that it has it.
const RINGED: &str = "(() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
})()";

/// Roles of what can be used, each of which needs a name.
const USABLE: [&str; 9] =
    ["button", "checkbox", "combobox", "dialog", "link", "searchbox", "table", "textbox", "img"];

/// The roles that are on the page, once all that can be used has a name.
fn named_roles(browser: &mut Browser) -> BTreeSet<String> {
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let mut roles = BTreeSet::new();
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        if node["ignored"] == Value::Bool(true) || !USABLE.contains(&role) {
            continue;
        }
        let name = node["name"]["value"].as_str().unwrap_or_default().trim();
        assert!(!name.is_empty(), "a {role} has no name: {node}");
        roles.insert(role.to_owned());
    }
    roles
}

/// What Tab goes to, one after the other, each of which shows that it has the focus.
fn tabbed(browser: &mut Browser) -> Vec<String> {
    let mut reached = Vec::new();
    for _ in 0..40 {
        browser.press("Tab");
        if browser.value("document.activeElement === document.body") == true {
            break;
        }
        let focused = browser.text(FOCUSED);
        assert_eq!(browser.value(RINGED), true, "{focused} does not show that it has the focus");
        reached.push(focused);
    }
    reached
}

/// From row to row, over both tables, into the details and back.
fn rows_and_details(browser: &mut Browser) {
    browser.value("document.activeElement.blur()");
    browser.press("j");
    assert_eq!(browser.value("document.activeElement.closest('table').id"), "processes");
    browser.press("Enter");
    browser.until("document.getElementById('panel').open");
    browser.press("Escape");
    browser.until("!document.getElementById('panel').open");
    // Rows change places under a key that is pressed.
    while browser.text("document.activeElement.closest('table').id") == "processes" {
        browser.press("j");
    }
    let first = browser.text("document.querySelector('#devices tbody .open').textContent");
    assert_eq!(browser.text(FOCUSED), first);
    browser.press("ArrowDown");
    assert_eq!(browser.text(FOCUSED), format!("{first}R"));
    browser.press("Home");
    browser.press("Enter");
    browser.until("document.getElementById('panel').open");
    let title = browser.text("document.getElementById('panel-title').textContent");
    assert_eq!(title, format!("Device {first}"));
    // Keys of the page do nothing behind a dialog.
    browser.press("p");
    browser.press("?");
    assert_eq!(browser.text("document.getElementById('pause').ariaPressed"), "false");
    assert!(named_roles(browser).contains("dialog"));
    browser.press("Escape");
    browser.until("!document.getElementById('panel').open");
    assert_eq!(browser.text(FOCUSED), first, "the focus is back where it was");
    tiles(browser, &first);
    who_holds_it(browser, &first);
}

/// From tile to tile of the map, and to what one is of.
fn tiles(browser: &mut Browser, first: &str) {
    let tile = "document.activeElement.ariaLabel";
    browser.value("document.querySelector('.tile').focus()");
    assert!(browser.text(tile).starts_with(&format!("{first}, DRAM by process")));
    browser.press("ArrowRight");
    assert!(browser.text(tile).starts_with(&format!("{first}R, ")), "{}", browser.text(tile));
    assert!(browser.text(tile).ends_with("held by 1 process"), "{}", browser.text(tile));
    browser.press("Enter");
    browser.until("document.getElementById('panel').open");
    let title = browser.text("document.getElementById('panel-title').textContent");
    assert_eq!(title, format!("Device {first}R"));
    browser.press("Escape");
    browser.until("!document.getElementById('panel').open");
}

/// From a device to who holds it, and from there to what that holds.
fn who_holds_it(browser: &mut Browser, device: &str) {
    const TITLE: &str = "document.getElementById('panel-title').textContent";
    const HELD: &str = "document.querySelector('#panel-held tbody button')";
    browser.value("document.querySelector('#devices tbody .open').click()");
    browser.until(&format!("{HELD} !== null"));
    let holder = browser.text(&format!("{HELD}.textContent"));
    let row = "document.querySelector('#panel-held tbody tr').innerText";
    browser.until(&format!("/[0-9.]+ [KMG]iB/.test({row})"));
    browser.value(&format!("{HELD}.click()"));
    browser.until(&format!("!{TITLE}.startsWith('Device')"));
    let title = browser.text(TITLE);
    let (pid, name) = holder.split_once(' ').unwrap();
    assert_eq!(title, format!("{name} ({pid})"));
    let held = "[...document.querySelectorAll('#panel-held tbody button')]";
    browser.value(&format!("{held}.find((one) => one.textContent === '{device}').click()"));
    browser.until(&format!("{TITLE} === 'Device {device}'"));
    browser.press("Escape");
    browser.until("!document.getElementById('panel').open");
    // Its contents go a moment after it has closed.
    browser.until("document.getElementById('panel-held').childElementCount === 0");
}

fn letters_do_what_the_help_says(browser: &mut Browser) {
    browser.press("p");
    assert_eq!(browser.text("document.getElementById('connection').dataset.state"), "paused");
    browser.press("p");
    browser.until(super::fixture::LIVE);
    browser.press("?");
    browser.until("document.getElementById('help').open");
    browser.press("Escape");
    browser.press("/");
    assert_eq!(browser.text(FOCUSED), "filter");
    browser.press("p");
    assert_eq!(browser.text("document.getElementById('filter').value"), "p");
    browser.press("Backspace");
    browser.press("Escape");
    assert_eq!(browser.value("document.activeElement === document.body"), true);
}

#[test]
fn keys_alone_reach_and_use_everything() {
    let test = "page::operated::keys_alone_reach_and_use_everything";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n300");
    fixture.work("train", "train", 0);
    fixture.work("evaluate", "evaluate", 1);
    fixture.serve("0.5", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length >= 2");

    let reached = tabbed(browser);
    let expected = [
        "Skip to the processes",
        "filter",
        "theme",
        "pause",
        "token-button",
        "help-button",
        "map-metric",
    ];
    assert_eq!(reached[..expected.len()], expected);
    assert!(reached[expected.len()].contains("iB"), "one tile of the map: {reached:?}");
    let headings = |column: &str| reached.iter().filter(|one| *one == column).count();
    let both = ["DRAM", "L1"].map(headings);
    let one = ["Pid", "User", "Name", "Device", "Buffers", "Temperature", "Held by"];
    assert_eq!((both, one.map(headings)), ([2; 2], [1, 1, 1, 2, 1, 1, 1]), "{reached:?}");
    assert!(reached.last().unwrap().starts_with("Sources"), "{reached:?}");
    let rows = reached.iter().filter(|one| one.parse::<u64>().is_ok()).count();
    assert_eq!(rows, 2, "one row of each table is in the order of Tab: {reached:?}");

    rows_and_details(browser);
    letters_do_what_the_help_says(browser);
    let roles = named_roles(browser);
    for role in ["button", "searchbox", "table"] {
        assert!(roles.contains(role), "{roles:?}");
    }
    // The service may have been asked the letter that stood in the filter, which is no query.
    let only_400 = |one: &String| one.contains("400");
    assert!(browser.complaints.iter().all(only_400), "{:?}", browser.complaints);
}
