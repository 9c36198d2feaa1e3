//! The page in every size, with and without the panel of a device.

use std::time::Duration;

use telltale_harness::wait_until;

use super::{Album, SCHEMES, workloads};
use crate::cli::page::appearance::is_well;
use crate::cli::page::browser::Browser;

/// Width and height of a window, and whether it is a phone's, which has twice the pixels.
const WINDOWS: [(u32, u32, bool); 3] = [(390, 844, true), (1440, 900, false), (2560, 1440, false)];

/// Seconds of history that the documents show.
const HISTORY_SECONDS: f64 = 300.0;

/// A few alerts that fire, of two severities.
pub(super) const RULES: &str = "\
[[alerts.rule]]
name = \"device_memory_nearly_full\"
above_ratio = 0.8
clear_ratio = 0.7
for_seconds = 0
[[alerts.rule]]
name = \"device_memory_full\"
condition = \"capacity\"
severity = \"critical\"
above_ratio = 0.9
clear_ratio = 0.8
for_seconds = 0
";

/// Seconds between the first and the last point of the first plot.
const SPAN: &str = "(() => {
    const data = document.querySelector('.plot')?.plot.data;
    const known = data ? data[0].filter((_, place) => data[1][place] !== null) : [];
    return known.length ? known.at(-1) - known[0] : 0;
})()";

/// The chip that several share.
const OPEN: &str = "document.querySelector('.tile[aria-label^=\"T2:N0,\"]').click()";
const PLOTS: &str = "document.querySelectorAll('.plot').length >= 3
    && document.querySelectorAll('#panel-held tbody tr').length === 3";
const FIRING: &str = "document.querySelectorAll('#alert-list [data-severity=critical]').length > 0";

/// Waits for what there is to see.
pub(super) fn wait(browser: &mut Browser, has_history: bool) {
    browser.until(FIRING);
    if has_history {
        browser.value(OPEN);
        wait_until("a history", Duration::from_secs(900), || {
            browser.value(SPAN).as_f64().is_some_and(|span| span > HISTORY_SECONDS)
        });
        browser.value("document.getElementById('panel').close()");
    }
}

/// Takes all pictures of the page.
pub(super) fn take(browser: &mut Browser, album: &mut Album) {
    for scheme in SCHEMES {
        browser.prefer(&[("prefers-color-scheme", scheme)]);
        for (width, height, phone) in WINDOWS {
            let scale = if phone { 2 } else { 1 };
            let pixels = (width * scale, height * scale);
            let name = format!("{scheme}-{width}x{height}");
            browser.window(width, height, phone);
            browser.until(&format!("innerWidth === {width} && scrollY === 0"));
            is_well(browser, &name);
            let text = browser.text("document.querySelector('main').innerText");
            for word in workloads::names() {
                assert!(text.contains(word), "{word} on {name}: {text}");
            }
            album.take(browser, &format!("page-{name}"), pixels);

            browser.value(OPEN);
            browser.until(PLOTS);
            is_well(browser, &format!("a device, {name}"));
            album.take(browser, &format!("page-device-{name}"), pixels);
            browser.value("document.getElementById('panel').close()");
            browser.until("!document.querySelector('.plot')");
        }
    }
}
