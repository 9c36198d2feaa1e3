//! The page's filter: the rows of `telltale smi --filter`, and where a query stops making sense.

use serde_json::Value;
use telltale_harness::wait_until;

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};
use crate::cli::command::{TIMEOUT, smi};

const ERROR: &str = "document.getElementById('filter-error').textContent";

/// The ids or pids that a table shows.
fn first_cells(browser: &mut Browser, table: &str) -> Vec<String> {
    let cells = format!(
        "[...document.querySelectorAll('#{table} tbody tr')].map((row) => row.querySelector('.open').textContent)"
    );
    let mut cells: Vec<String> = serde_json::from_value(browser.value(&cells)).unwrap();
    cells.sort();
    // A process has a row for each of its devices.
    cells.dedup();
    cells
}

/// Writes a query where the one before stood.
fn filter(browser: &mut Browser, query: &str) {
    browser.value("document.getElementById('filter').select()");
    browser.write(query);
    let text = serde_json::to_string(query).unwrap();
    browser.until(&format!("document.getElementById('filter').value === {text}"));
}

/// Escape leaves the box, what stands in it, and the rows that go with it.
fn escape_leaves_the_rows(browser: &mut Browser) {
    filter(browser, "name == train");
    browser.until("document.getElementById('filter-error').hidden");
    browser.press("Escape");
    assert_eq!(browser.value("document.activeElement === document.body"), true);
    assert_eq!(browser.text("document.getElementById('filter').value"), "name == train");
    assert_eq!(first_cells(browser, "processes").len(), 1);
}

#[test]
fn the_rows_are_those_of_smi_and_an_error_points_at_its_column() {
    let test = "page::filtered::the_rows_are_those_of_smi_and_an_error_points_at_its_column";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n300");
    fixture.work("train", "train", 0);
    fixture.work("evaluate", "evaluate", 1);
    fixture.freeze();
    fixture.serve("0.2", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length >= 2");
    browser.value("document.getElementById('filter').focus()");
    for query in ["name == train", "device ~ /R$/", "\"evaluate\" or dram > 1TiB", "pid == 1"] {
        let said = smi(&fixture.root, &["--json", "--filter", query]);
        let reported: Value = serde_json::from_str(&said.out).unwrap();
        let names = |list: &str, name: &str| -> Vec<String> {
            let all = reported[list].as_array().unwrap().iter();
            let mut all: Vec<String> =
                all.map(|one| one[name].to_string().trim_matches('"').to_owned()).collect();
            all.sort();
            all
        };
        filter(browser, query);
        let left = reported["left_out"]["processes"].as_u64().unwrap();
        let count = match (names("processes", "pid").len(), left) {
            (all, 0) => all.to_string(),
            (some, left) => format!("{some} of {}", some as u64 + left),
        };
        browser
            .until(&format!("document.getElementById('process-count').textContent === '{count}'"));
        for (table, key) in [("devices", "id"), ("processes", "pid")] {
            wait_until(&format!("{query}: its {table}"), TIMEOUT, || {
                first_cells(browser, table) == names(table, key)
            });
        }
    }
    let caption = browser.text("document.querySelector('#devices caption').textContent");
    assert_eq!(caption, "No device matches the filter.");
    // The totals are those of the machine.
    assert!(browser.text("document.getElementById('totals').innerText").contains("2 n300"));
    assert_eq!(browser.complaints, Vec::<String>::new());

    // What makes no sense is reported, and the rows of the query before stay.
    filter(browser, "name == train");
    browser.until("document.getElementById('process-count').textContent === '1 of 2'");
    filter(browser, "name == train and usr == ada");
    browser.until("!document.getElementById('filter-error').hidden");
    assert_eq!(
        browser.text(ERROR),
        "name == train and usr == ada\n                  ^\n\
         filter, column 19: there is no field `usr`; did you mean `user`?"
    );
    assert_eq!(browser.value("document.getElementById('filter').ariaInvalid"), "true");
    assert_eq!(first_cells(browser, "processes").len(), 1);
    browser.keep_picture("page-filter-error");
    let only_400 = |one: &String| one.contains("400");
    assert!(browser.complaints.iter().all(only_400), "{:?}", browser.complaints);

    escape_leaves_the_rows(browser);

    // An empty box shows all again.
    browser.value("document.getElementById('filter').focus()");
    browser.value("document.getElementById('filter').select()");
    browser.press("Backspace");
    browser.until("document.getElementById('process-count').textContent === '2'");
    assert_eq!(browser.value("document.getElementById('filter-error').hidden"), true);
}

#[test]
fn without_the_token_a_filter_finds_no_process_and_no_name() {
    let test = "page::filtered::without_the_token_a_filter_finds_no_process_and_no_name";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.work("a-secret-name", "--a-secret-command", 0);
    fixture.serve("0.2", true, "");
    fixture.open(browser, None);
    browser.until("document.querySelectorAll('#devices tbody tr').length === 1");
    browser.value("document.getElementById('filter').focus()");
    filter(browser, "name ~ /secret/");
    browser.until("document.getElementById('device-count').textContent === '0 of 1'");
    assert_eq!(browser.value("document.querySelectorAll('#processes tbody tr').length"), 0);
    // With it the same filter finds the process, and its device.
    browser.value("document.getElementById('token-button').click()");
    browser.write(TOKEN);
    browser.press("Enter");
    browser.until("document.querySelectorAll('#processes tbody tr').length === 1");
    browser.until("document.getElementById('device-count').textContent === '1'");
    browser.value("document.getElementById('token-button').click()");
    browser.value("document.getElementById('token-forget').click()");
    browser.until("document.querySelectorAll('#processes tbody tr').length === 0");
    assert_eq!(browser.complaints, Vec::<String>::new());
}
