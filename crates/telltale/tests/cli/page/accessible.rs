//! What axe-core, an independent checker, finds wrong with the page for those who use a keyboard or a screen reader
//! (<https://github.com/dequelabs/axe-core>). Debian has no package of it; one for Python carries its file.

use std::fs;

use serde_json::Value;
use telltale_harness::python_with;

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

const PACKAGE: &str = "axe_playwright_python";
const LOCATE: &str = "import importlib.util as u; \
    print(u.find_spec('axe_playwright_python').submodule_search_locations[0])";

/// Each rule that is broken, with the first element that breaks it.
const VIOLATIONS: &str =
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations, passes }) =>
    passes.length < 10 ? ['hardly anything was looked at'] :
        violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`))";

#[track_caller]
fn is_accessible(browser: &mut Browser, what: &str) {
    assert_eq!(browser.value(VIOLATIONS), Value::Array(Vec::new()), "{what}");
}

#[test]
fn axe_finds_nothing_wrong() {
    let test = "page::accessible::axe_finds_nothing_wrong";
    let Some(mut python) = python_with(test, PACKAGE) else { return };
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let place = String::from_utf8(python.args(["-c", LOCATE]).output().unwrap().stdout).unwrap();
    let axe = fs::read_to_string(format!("{}/axe.min.js", place.trim())).unwrap();
    let mut fixture = Fixture::new("galaxy-wormhole");
    fixture.work("train", "train", 0);
    fixture.work("evaluate", "evaluate", 0);
    fixture.serve("0.5", true, super::appearance::HOT);
    fixture.open(browser, None);
    browser.value(&format!("{axe}; 0"));
    is_accessible(browser, "without a token");
    fixture.open(browser, Some(TOKEN));
    browser.value(&format!("{axe}; 0"));
    browser.until("document.querySelectorAll('#processes tbody tr').length === 2");
    browser.until("document.querySelectorAll('#alert-list li').length > 0");
    for scheme in ["light", "dark"] {
        browser.prefer(&[("prefers-color-scheme", scheme)]);
        is_accessible(browser, scheme);
    }
    browser.window(390, 844, true);
    is_accessible(browser, "a phone");
    browser.window(1440, 900, false);
    for metric in ["temperature", "power"] {
        browser.value(&format!("location.hash = 'map={metric}&idle=shown'"));
        browser.until(&format!("document.getElementById('map-metric').value === '{metric}'"));
        is_accessible(browser, metric);
    }
    for table in ["devices", "processes"] {
        browser.value(&format!("document.querySelector('#{table} tbody .open').click()"));
        browser.until("document.querySelectorAll('.plot').length >= 2");
        is_accessible(browser, table);
        browser.press("Escape");
    }
    for button in ["help-button", "token-button"] {
        browser.value(&format!("document.getElementById('{button}').click()"));
        is_accessible(browser, button);
        browser.press("Escape");
    }
}
