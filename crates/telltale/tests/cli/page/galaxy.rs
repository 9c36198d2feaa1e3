//! A Galaxy at a glance: who holds which chip, on every size of screen, in one colour everywhere, and at
//! an address that a colleague can open.

use serde_json::{Value, json};

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

/// Chips of each tray that a workload holds, as places of devices: three on one chip, one on others.
const WORKLOADS: [(&str, usize); 5] =
    [("pretrain", 0), ("finetune", 0), ("notebook", 0), ("evaluate", 1), ("serve", 9)];

/// Where something is in the window, as `top right bottom left`.
fn edges(browser: &mut Browser, selector: &str) -> [f64; 4] {
    let rect = browser.value(&format!(
        "(({{ top, right, bottom, left }}) => [top, right, bottom, left])(
            document.querySelector({selector:?}).getBoundingClientRect())"
    ));
    let all: Vec<f64> = rect.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    all.try_into().unwrap()
}

/// Processes are seen without scrolling, and no part of a wide window is left blank.
fn first_screens(browser: &mut Browser) {
    browser.window(1440, 900, false);
    let [_, _, bottom, _] = edges(browser, "#processes tbody tr:last-child");
    assert!(bottom < 900.0, "the last of five processes ends at {bottom}");
    let [map_top, ..] = edges(browser, "#map");
    let [top, ..] = edges(browser, "#processes");
    assert!(map_top < top, "{map_top} {top}");

    browser.window(390, 844, true);
    browser.until("document.querySelector('#tables').nextElementSibling.id === 'map-section'");
    let [top, right, bottom, _] = edges(browser, "#processes tbody tr");
    let [map_top, ..] = edges(browser, "#map");
    assert!(bottom < 844.0 && right <= 390.0 && top < map_top, "{top} {right} {bottom} {map_top}");

    browser.window(2560, 1440, false);
    browser.until("document.querySelector('#map-section').nextElementSibling.id === 'tables'");
    let [processes_top, processes_right, ..] = edges(browser, "#processes-section");
    let [devices_top, devices_right, _, devices_left] = edges(browser, "#devices-section");
    assert_eq!(processes_top, devices_top);
    assert!(processes_right < devices_left && devices_right > 2560.0 - 40.0, "{devices_right}");
    browser.window(1440, 900, false);
}

/// Chips that no process holds have a row together for each tray, until they are wanted; one whose link is reduced
/// has its own.
fn idle_trays(browser: &mut Browser) {
    let ids = "[...document.querySelectorAll('#devices tbody tr')].map((row) => row.dataset.key)";
    let expected = json!([
        "T1:N0",
        "T1:N1",
        "T1: 6 idle",
        "T2:N1",
        "T2: 7 idle",
        "T3:N2",
        "T3: 7 idle",
        "T4: 8 idle"
    ]);
    assert_eq!(browser.value(ids), expected);
    let row =
        browser.text("document.querySelector('#devices tr[data-key=\"T4: 8 idle\"]').innerText");
    assert!(row.contains("0 B / 96.0 GiB") && row.contains("no process"), "{row}");
    browser.value("document.querySelector('#devices tr[data-key=\"T4: 8 idle\"] .open').click()");
    assert_eq!(browser.value(&format!("{ids}.length")), 32);
    assert_eq!(browser.text("location.hash"), "#idle=shown");
    browser.value("document.getElementById('idle-button').click()");
    assert_eq!(browser.value(ids), expected);
    assert_eq!(browser.text("location.hash"), "");
}

/// The colours of a process: in its row, in the chip's panel, in its plot, and whether the bars of the chip in the
/// table and on the map have a part of the first of them.
fn colours(browser: &mut Browser, pid: &str) -> (Vec<String>, [bool; 2]) {
    let found = browser.value(&format!(
        "(() => {{
            const colour = (one) => one && getComputedStyle(one).backgroundColor;
            const swatch = (table) => [...document.querySelectorAll(`${{table}} tbody tr`)]
                .find((row) => row.querySelector('.open').textContent.split(' ')[0] === '{pid}').querySelector('.swatch');
            const marker = [...document.querySelectorAll('.plot[data-title=\"DRAM by process\"] .u-series th')]
                .find((one) => one.textContent.startsWith('{pid} '))?.querySelector('.u-marker');
            const all = [swatch('#processes'), swatch('#panel-held'), marker].map(colour);
            const has = (bar) => [...document.querySelector(bar).children].some((part) => colour(part) === all[0]);
            return [all, [has('#devices .bar'), has('.tile .bar')]];
        }})()"
    ));
    serde_json::from_value(found).unwrap()
}

/// Whether `rgb(…)` is a pink, a red or a magenta, of which the page has three.
fn is_reddish(colour: &str) -> bool {
    let numbers = colour.trim_start_matches("rgb(").trim_end_matches(')').split(", ");
    let [red, green, blue] = numbers.map(|one| one.parse().unwrap()).collect::<Vec<i32>>()[..]
    else {
        panic!("{colour}")
    };
    red > green.max(blue) && blue - green > -15
}

/// A chip's panel: its holders with what tells them apart, and their memory over time, which adds up.
fn panel(browser: &mut Browser) {
    browser.value("document.querySelector('.tile').click()");
    browser.until("document.querySelectorAll('#panel-held tbody tr').length === 3");
    browser.until(
        "[...document.querySelectorAll('#panel-held tbody .open')].every((one) =>
            document.querySelector('.plot[data-title=\"DRAM by process\"] .u-legend')?.textContent.includes(one.textContent))",
    );
    let head = browser.text("document.querySelector('#panel-held thead').innerText");
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>().join(" "),
        "Process User DRAM L1 Buffers Since Command"
    );
    let row = browser.text("document.querySelector('#panel-held tbody tr').innerText");
    for part in ["peak ", "iB", ":", " s", "replay train --loop"] {
        assert!(row.contains(part), "{part} in {row}");
    }
    let mut seen = Vec::new();
    // All names from one moment: the rows change places as memory does.
    let names =
        "[...document.querySelectorAll('#panel-held tbody .open')].map((one) => one.textContent)";
    let names: Vec<String> = serde_json::from_value(browser.value(names)).unwrap();
    for label in names {
        let pid = label.split(' ').next().unwrap();
        let (all, bars) = colours(browser, pid);
        assert!(all.iter().all(|one| *one == all[0] && one.starts_with("rgb")), "{pid}: {all:?}");
        assert_eq!(bars, [true; 2], "{pid}: {all:?}");
        seen.push(all[0].clone());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "three processes, three colours");
    let reds = seen.iter().filter(|colour| is_reddish(colour)).count();
    assert!(reds <= 1, "{seen:?} differ where they touch");

    let sums = "(() => {
        const box = document.querySelector('.plot[data-title=\"DRAM by process\"]');
        const used = box.drawn.lines[0].mean;
        const of = (at) => box.own.reduce((sum, one) => sum + one[at], 0);
        return used.map((one, at) => [one, of(at)]).filter(([one]) => one !== null);
    })()";
    browser.until(&format!("{sums}.length > 0"));
    for pair in browser.value(sums).as_array().unwrap() {
        let [used, sum] = [0, 1].map(|at| pair[at].as_f64().unwrap());
        assert!((used - sum).abs() <= used * 0.02, "{used} in use, {sum} in parts");
    }
    // What is so now is the newest snapshot's, in the list, the facts and above the plot.
    let now = "[document.querySelector('.plot figcaption span').textContent.split(' now')[0],
        [...document.querySelectorAll('#panel-facts dt')].find((one) => one.textContent === 'dram')
            .nextElementSibling.textContent.split(' = ')[0]]";
    let both = browser.value(now);
    assert_eq!(both[0], both[1]);
}

/// All that the page shows is in its address, and the browser's way back closes a panel.
fn address(browser: &mut Browser, fixture: &Fixture) {
    browser.press("Escape");
    browser.until("!document.getElementById('panel').open && location.hash === ''");
    browser.value("history.back()");
    browser.until("document.getElementById('panel-title').textContent === 'Device T1:N0'");
    browser.value("history.back()");
    browser.until("!document.getElementById('panel').open");
    let choose = |browser: &mut Browser, id: &str, value: &str| {
        browser.value(&format!(
            "(() => {{ const one = document.getElementById('{id}'); one.value = '{value}';
                one.dispatchEvent(new Event(one.tagName === 'INPUT' ? 'input' : 'change')); }})()"
        ));
    };
    choose(browser, "map-metric", "temperature");
    choose(browser, "theme", "dark");
    choose(browser, "filter", "name != notebook");
    browser.until("document.getElementById('process-count').textContent === '4 of 5'");
    browser.value(
        "[...document.querySelectorAll('#processes thead button')].find((one) => one.textContent === 'Name').click()",
    );
    browser.value("document.querySelectorAll('.tile')[9].click()");
    choose(browser, "range", "3600");
    let address = browser.text("location.href");
    assert!(!address.contains(TOKEN), "{address}");

    // Another reader, in a tab that has nothing but the address.
    browser.another_tab();
    browser.prefer(&[("prefers-color-scheme", "light")]);
    browser.open(&address);
    browser.until(super::fixture::LIVE);
    browser.until("document.getElementById('process-count').textContent === '4 of 5'");
    browser.until("document.getElementById('panel-title').textContent === 'Device T2:N1'");
    let shown = "[document.getElementById('filter').value, document.getElementById('range').value,
        document.getElementById('map-metric').value, document.getElementById('theme').value,
        document.querySelector('#processes th[aria-sort=ascending]').textContent,
        getComputedStyle(document.body).backgroundColor, location.href]";
    let expected = json!([
        "name != notebook",
        "3600",
        "temperature",
        "dark",
        "Name",
        "rgb(18, 23, 27)",
        address
    ]);
    assert_eq!(browser.value(shown), expected);
    let heat = "[0, 2].map((at) => getComputedStyle(document.querySelectorAll('.tile')[at]).getPropertyValue('--heat'))";
    let heats = browser.value(heat);
    assert_ne!(heats[0], heats[1], "a chip that works is hotter than one that idles: {heats}");
    // Values that mean nothing are no harm.
    browser.open(&format!(
        "{}#range=1e9&map=nonsense&theme=x&devices=;&processes=:desc&device=T9:N9",
        fixture.address
    ));
    browser.until(super::fixture::LIVE);
    browser.until("document.getElementById('panel-note').textContent.startsWith('This device is not listed.')");
}

#[test]
fn who_holds_which_chip_is_seen_at_once() {
    let test = "page::galaxy::who_holds_which_chip_is_seen_at_once";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::with("galaxy-wormhole", &["--fault", "link:18:8:4"]);
    for (name, device) in WORKLOADS {
        fixture.work(name, name, device);
    }
    fixture.grow(1 << 24);
    fixture.serve("0.5", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length === 5");
    first_screens(browser);
    idle_trays(browser);
    panel(browser);
    address(browser, &fixture);
    let history_404 = |one: &String| one.contains("404");
    assert!(browser.complaints.iter().all(history_404), "{:?}", browser.complaints);
    assert_eq!(browser.value("document.querySelectorAll('.tile').length"), Value::from(32));
}
