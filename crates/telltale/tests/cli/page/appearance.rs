//! How the page looks: on a phone and on a screen, in light and in dark, and to those who see
//! contrasts badly or want nothing to move. `cli::pictures` looks at more sizes.

use serde_json::Value;

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

/// Where contrasts do not suffice, by WCAG 2.2 (<https://www.w3.org/TR/WCAG22/#contrast-minimum>):
/// 4.5 for every text that is shown, 3 for what is no text and for the edges of fields.
const WEAK: &str = r#"(() => {
    const channel = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const ratio = (one, other) => {
        const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
    };
    const parse = (text) => {
        const numbers = text.match(/[\d.]+/g).map(Number);
        const scale = text.startsWith('rgb') ? 255 : 1;
        return [...numbers.slice(0, 3).map((one) => one / scale), numbers[3] ?? 1];
    };
    const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
    const ground = (one) => {
        if (!one) return [1, 1, 1];
        const own = parse(getComputedStyle(one).backgroundColor);
        return own[3] === 1 ? own : over(own, ground(one.parentElement));
    };
    const weak = [];
    let looked = 0;
    for (const one of document.querySelectorAll('body *')) {
        const texts = [...one.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
        if (!texts.length || !one.checkVisibility() || one.closest('noscript')) continue;
        looked += 1;
        const below = ground(one);
        const found = ratio(over(parse(getComputedStyle(one).color), below), below);
        if (found < 4.5) weak.push(`${one.textContent.slice(0, 40)}: ${found.toFixed(2)}`);
    }
    const probe = document.body.appendChild(document.createElement('i'));
    const named = (name) => {
        probe.style.color = `var(--${name})`;
        return parse(getComputedStyle(probe).color);
    };
    const pairs = [['soft', 'raised', 4.5], ['soft', 'ground', 4.5], ['edge', 'raised', 3], ['accent', 'raised', 3],
        ['accent', 'ground', 3], ['good', 'raised', 3], ['fill-high', 'raised', 3]];
    for (const fill of ['fill', 'fill-raised', 'fill-high']) pairs.push([fill, 'track', 3]);
    const hues = [...Array(12).keys(), 'other'].map((hue) => `hue-${hue}`);
    for (const hue of hues) pairs.push([hue, 'raised', 3], [hue, 'track', 3]);
    for (const [one, other, least] of pairs) {
        const found = ratio(named(one), named(other));
        if (!(found >= least)) weak.push(`${one} on ${other}: ${found.toFixed(2)}`);
    }
    probe.remove();
    return looked < 20 ? [`only ${looked} texts were looked at`] : weak;
})()"#;

/// What reaches beyond the window to the right.
const TOO_WIDE: &str = "(() => {
    const room = document.documentElement.clientWidth;
    const page = document.documentElement.scrollWidth > room ? ['the page'] : [];
    const wide = [...document.querySelectorAll('body *:not(.skip):not(svg *)')].filter((one) =>
        one.checkVisibility() && one.getBoundingClientRect().right > room + 1);
    const dialogs = [...document.querySelectorAll('dialog[open]')].filter((one) => one.scrollWidth > one.clientWidth);
    return [...page, ...wide.map((one) => one.outerHTML.slice(0, 120)), ...dialogs.map((one) => one.id)];
})()";

/// A rule that fires on a chip that works.
pub(super) const HOT: &str = "\
[[alerts.rule]]
name = \"device_hot\"
above_ratio = 0.55
clear_ratio = 0.1
for_seconds = 0
";

#[track_caller]
pub(crate) fn is_well(browser: &mut Browser, what: &str) {
    assert_eq!(browser.value(WEAK), Value::Array(Vec::new()), "{what}");
    assert_eq!(browser.value(TOO_WIDE), Value::Array(Vec::new()), "{what}");
}

/// Who holds which chip.
const WORKLOADS: [(&str, usize); 7] = [
    ("pretrain", 0),
    ("pretrain", 1),
    ("finetune", 0),
    ("notebook", 0),
    ("evaluate", 1),
    ("serve", 9),
    ("serve", 12),
];

/// On a phone alerts are a line that the keyboard opens, and processes are seen without scrolling.
fn alerts_are_folded(browser: &mut Browser) {
    let list = "document.getElementById('alert-list').checkVisibility()";
    let row = "document.querySelector('#processes tbody tr').getBoundingClientRect().bottom";
    let fold = "document.getElementById('alert-fold')";
    assert_eq!(browser.value(list), true);
    assert_eq!(browser.value(&format!("{fold}.checkVisibility()")), false);
    browser.window(390, 844, true);
    browser.until("document.querySelector('#tables').nextElementSibling.id === 'map-section'");
    assert_eq!(browser.value(list), false);
    let bottom = browser.value(row).as_f64().unwrap();
    assert!(bottom < 844.0, "the first process ends at {bottom}");
    let words = browser.text(&format!("{fold}.innerText"));
    assert!(words.contains(" warning") && words.contains("it throttles at"), "{words}");
    browser.value(&format!("{fold}.focus()"));
    browser.press("Enter");
    assert_eq!(browser.value(list), true);
    assert_eq!(browser.text(&format!("{fold}.ariaExpanded")), "true");
    is_well(browser, "alerts on a phone");
    browser.press("Enter");
    assert_eq!(browser.value(list), false);
    browser.window(1280, 900, false);
}

#[test]
fn it_can_be_read_on_every_screen_in_light_and_in_dark() {
    let test = "page::appearance::it_can_be_read_on_every_screen_in_light_and_in_dark";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("galaxy-wormhole");
    for (name, device) in WORKLOADS {
        fixture.work(name, name, device);
    }
    fixture.serve("0.5", true, HOT);
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#alert-list li').length > 0");
    alerts_are_folded(browser);
    browser.value("document.querySelector('#devices tbody .open').click()");
    browser.until("document.querySelectorAll('.plot').length >= 3");
    for scheme in ["light", "dark"] {
        browser.prefer(&[("prefers-color-scheme", scheme)]);
        browser.window(1280, 900, false);
        browser.value("document.getElementById('panel').open || document.querySelector('#devices tbody .open').click()");
        browser.until("document.querySelectorAll('.plot').length >= 3");
        is_well(browser, "details");
        browser.window(360, 740, true);
        browser.until("document.querySelector('.plot canvas').getBoundingClientRect().width < 360");
        is_well(browser, "details on a phone");
        browser.value("document.getElementById('panel').close()");
        is_well(browser, "a phone");
        browser.window(1280, 900, false);
        is_well(browser, "a screen");
        for (button, dialog) in [("help-button", "help"), ("token-button", "access")] {
            browser.value(&format!("document.getElementById('{button}').click()"));
            is_well(browser, dialog);
            browser.window(360, 740, true);
            is_well(browser, dialog);
            browser.window(1280, 900, false);
            browser.value(&format!("document.getElementById('{dialog}').close()"));
        }
        browser.value("document.getElementById('sources-details').open = true");
        browser.until("document.querySelectorAll('#sources tbody tr').length > 0");
        is_well(browser, "sources");
        browser.value("document.getElementById('sources-details').open = false");
    }
    let moves = "getComputedStyle(document.querySelector('.bar > i')).transitionDuration";
    browser.prefer(&[("prefers-reduced-motion", "reduce")]);
    assert_eq!(browser.text(moves), "0s");
    browser.prefer(&[("prefers-reduced-motion", "no-preference")]);
    assert_eq!(browser.text(moves), "0.3s");
    assert_eq!(browser.complaints, Vec::<String>::new());
}
