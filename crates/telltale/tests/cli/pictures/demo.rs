//! `telltale demo` in every size, with some minutes of losses where pictures are kept.

use super::{Album, SCHEMES, drawn};
use crate::cli::demo_view::DemoView;
use crate::cli::page::browser::Browser;

/// Columns and rows, the one at the start last.
const SIZES: [(usize, usize); 3] = [(200, 60), (120, 40), (80, 24)];

/// Takes all pictures of the demo; nothing where there is no terminal for it.
pub(super) fn take(test: &str, browser: &mut Browser, album: &mut Album) {
    let Some(mut view) = DemoView::start(test, SIZES[2], "", "") else { return };
    browser.open("about:blank");
    for (columns, rows) in SIZES {
        view.resize((columns, rows));
        let cells = view.shows(&["[7 Losses]", "LOSS, 0 TO", "1.shares", "F10Quit"]);
        for scheme in SCHEMES {
            let size = drawn::draw(browser, &cells, scheme);
            album.take(browser, &format!("demo-{scheme}-{columns}x{rows}"), size);
        }
    }
    view.type_in(b"q");
}
