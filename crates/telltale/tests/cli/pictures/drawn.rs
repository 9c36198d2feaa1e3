//! Draws a terminal's cells in the browser: each has a place and a size in whole pixels, and blocks fill them as
//! they do on a terminal.

use std::fmt::Write;

use serde_json::json;

use super::cells::{Cells, Look, Shade};
use crate::cli::page::browser::Browser;

/// Pixels of a cell, and around all of them.
const CELL: (u32, u32) = (9, 17);
const MARGIN: u32 = 8;
/// The letters of DejaVu Sans Mono are 1233 of 2048 units wide.
const LETTER_PIXELS: f64 = 9.0 * 2048.0 / 1233.0;

/// The colours of a terminal: ground, ink, and its sixteen.
struct Palette {
    ground: u32,
    ink: u32,
    sixteen: [u32; 16],
}

/// Those of the Tango project, the bright ones of the light one being darker so that they are read on white.
const LIGHT: Palette = Palette {
    ground: 0xff_ff_ff,
    ink: 0x1f_24_28,
    sixteen: [
        0x2e_34_36, 0xb8_12_12, 0x2f_7a_05, 0x8a_66_00, 0x24_57_a0, 0x75_3a_7c, 0x05_70_78,
        0x8c_92_8c, 0x55_57_53, 0xd0_20_20, 0x3c_8f_10, 0xa8_7c_00, 0x2f_6f_c0, 0x9a_50_a0,
        0x08_88_90, 0xc8_cc_c6,
    ],
};
const DARK: Palette = Palette {
    ground: 0x14_18_1c,
    ink: 0xd8_de_e0,
    sixteen: [
        0x2e_34_36, 0xef_5a_4a, 0x6f_b5_2c, 0xd9_ae_2b, 0x4f_8f_d8, 0xb0_80_b8, 0x35_b5_b8,
        0xd3_d7_cf, 0x6a_70_70, 0xff_7a_6a, 0x9a_e2_54, 0xfc_e0_5f, 0x82_b4_f0, 0xd0_a4_d6,
        0x62_e0_e0, 0xf4_f6_f4,
    ],
};

/// Shows them in a window that is as large as they are, and gives its size in pixels.
pub(super) fn draw(browser: &mut Browser, cells: &Cells, scheme: &str) -> (u32, u32) {
    let palette = if scheme == "light" { LIGHT } else { DARK };
    let count = |many: usize| u32::try_from(many).unwrap();
    let size = (
        count(cells.rows[0].len()) * CELL.0 + 2 * MARGIN,
        count(cells.rows.len()) * CELL.1 + 2 * MARGIN,
    );
    let mut page = format!(
        "<style>body {{ margin: 0; background: {} }}
        i {{ position: absolute; width: {}px; height: {height}px; white-space: pre;
            font: {LETTER_PIXELS}px/{height}px 'DejaVu Sans Mono', monospace; }}</style>",
        colour(palette.ground),
        CELL.0,
        height = CELL.1
    );
    for (row, line) in cells.rows.iter().enumerate() {
        for (column, (letter, look)) in line.iter().enumerate() {
            if *letter != ' ' || *look != Look::default() {
                let place = (MARGIN + count(column) * CELL.0, MARGIN + count(row) * CELL.1);
                cell(&mut page, place, *letter, &palette, look);
            }
        }
    }
    browser.window(size.0, size.1, false);
    browser.value(&format!("document.documentElement.innerHTML = {}; 0", json!(page)));
    browser.value("document.fonts.ready.then(() => 0)");
    size
}

fn cell(page: &mut String, (left, top): (u32, u32), letter: char, palette: &Palette, look: &Look) {
    let (mut ink, mut ground) = (
        look.ink.map_or(palette.ink, |shade| palette.resolved(shade)),
        look.ground.map_or(palette.ground, |shade| palette.resolved(shade)),
    );
    if look.is_reversed {
        (ink, ground) = (ground, ink);
    }
    if look.is_faint {
        ink = between(ink, ground);
    }
    let (ink, ground) = (colour(ink), colour(ground));
    let _ = write!(page, "<i style='left:{left}px;top:{top}px;color:{ink};background:{ground}");
    if look.is_bold {
        page.push_str(";font-weight:bold");
    }
    if look.is_underlined {
        page.push_str(";text-decoration:underline");
    }
    let text = match block(letter) {
        Some((towards, eighths)) => {
            let pixels = if towards == "right" { CELL.0 } else { CELL.1 } * eighths;
            let _ = write!(
                page,
                ";background:linear-gradient(to {towards},{ink} {}px,{ground} 0)",
                (pixels + 4) / 8
            );
            String::new()
        }
        None => letter.to_string().replace('&', "&amp;").replace('<', "&lt;"),
    };
    let _ = write!(page, "'>{text}</i>");
}

/// A character that fills some eighths of its cell, and from which side on: letters leave gaps between lines.
fn block(letter: char) -> Option<(&'static str, u32)> {
    let place = u32::from(letter);
    match letter {
        '▀' => Some(("bottom", 4)),
        '▁'..='█' => Some(("top", place - 0x2580)),
        '▉'..='▏' => Some(("right", 0x2590 - place)),
        _ => None,
    }
}

impl Palette {
    fn resolved(&self, shade: Shade) -> u32 {
        let joined = |[red, green, blue]: [u8; 3]| u32::from_be_bytes([0, red, green, blue]);
        match shade {
            Shade::Exact(parts) => joined(parts),
            Shade::Numbered(number @ 0..=15) => self.sixteen[usize::from(number)],
            // A cube of six steps, then greys, as xterm has them.
            Shade::Numbered(number @ 16..=231) => {
                let step = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
                let place = number - 16;
                joined([step(place / 36), step(place / 6 % 6), step(place % 6)])
            }
            Shade::Numbered(number) => joined([8 + 10 * (number - 232); 3]),
        }
    }
}

/// Faint text has two thirds of its colour.
fn between(ink: u32, ground: u32) -> u32 {
    let (ink, ground) = (ink.to_be_bytes(), ground.to_be_bytes());
    let part = |at: usize| {
        u8::try_from((2 * u16::from(ink[at]) + u16::from(ground[at])) / 3)
            .expect("a mean is a byte")
    };
    u32::from_be_bytes([0, part(1), part(2), part(3)])
}

fn colour(parts: u32) -> String {
    format!("#{parts:06x}")
}
