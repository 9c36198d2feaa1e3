//! The page as its reader has it: what is to be seen in the window without scrolling, and clicks of a mouse.

use serde_json::{Value, json};
use telltale_harness::wait_until;

use crate::cli::command::TIMEOUT;
use crate::cli::page::browser::Browser;

/// The size of the window.
pub(super) const SIZE: (u32, u32) = (1440, 900);

/// A line for each row, tile or pair of words of which a part is inside the window.
pub(super) fn text(browser: &mut Browser) -> String {
    browser.text(SEEN)
}

/// Clicks on what is called so: a device's tile, or else the row of a process.
pub(super) fn click(browser: &mut Browser, name: &str) {
    let target = format!("{TARGET}({})", json!(name));
    // A new snapshot may move rows between the look and the click, so what was hit is asked afterwards.
    wait_until(name, TIMEOUT, || {
        browser.until(&format!("{target} !== null"));
        let at = browser.value(&target);
        if at.is_null() {
            return false;
        }
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            let answer: Value = browser.call("Input.dispatchMouseEvent", event);
            assert!(answer.is_object(), "{answer}");
        }
        let is_hit = browser.value("window.hit") == true;
        if !is_hit {
            browser.press("Escape");
        }
        is_hit
    });
}

const SEEN: &str = r"(() => {
    const inside = document.querySelector('dialog[open]') ?? document.body;
    const within = (box, frame) => box.width > 0 && box.top >= frame.top && box.bottom <= frame.bottom;
    const window_ = { top: 0, bottom: innerHeight };
    const lines = new Map();
    const all = document.createTreeWalker(inside, NodeFilter.SHOW_TEXT);
    for (let node = all.nextNode(); node; node = all.nextNode()) {
        if (!node.textContent.trim() || !node.parentElement.checkVisibility()) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const box = range.getBoundingClientRect();
        if (!within(box, window_) || (inside !== document.body && !within(box, inside.getBoundingClientRect()))) continue;
        const fact = node.parentElement.closest('dd, dt');
        const line = node.parentElement.closest('tr, li, .tile, dl > div, h3, figcaption')
            ?? (fact?.tagName === 'DD' ? fact.previousElementSibling : fact) ?? node.parentElement;
        lines.set(line, [...(lines.get(line) ?? []), node.textContent.trim()]);
    }
    return [...lines.values()].map((words) => words.join(' ')).join('\n');
})()";

/// The middle of what is called so, if it is in the window; whether the next click is there is in `window.hit`.
const TARGET: &str = "((name) => {
    const tile = [...document.querySelectorAll('.tile')].find((one) => one.ariaLabel.split(',')[0] === name);
    const row = [...document.querySelectorAll('#processes tbody tr')]
        .find((one) => [...one.cells].some((cell) => cell.firstChild?.textContent === name));
    const box = (tile ?? row?.querySelector('.open'))?.getBoundingClientRect();
    window.hit = false;
    window.onclick = ({ target }) => { window.hit = Boolean((tile ?? row)?.contains(target)); };
    return box && box.top >= 0 && box.bottom <= innerHeight ? [box.x + box.width / 2, box.y + box.height / 2] : null;
})";
