//! What stays selected, and how it is gone through: in the tree, and by the mouse in what lies over
//! the panes.

use telltale_smi::screen::{Column, InputEvent, PressedKey, Screen, ViewSettings};

use crate::golden::screens::{machine, page, press, screen_with, terms};

fn screen() -> Screen {
    screen_with(ViewSettings::default(), terms(), machine())
}

/// Where `words` are: column and row.
fn place(page: &str, words: &str) -> (u16, u16) {
    let found = page.lines().enumerate().find_map(|(row, line)| {
        // Each line stands in quotes.
        let before = line.split_once(words)?.0.chars().count() - 1;
        Some((u16::try_from(before).unwrap(), u16::try_from(row).unwrap()))
    });
    found.unwrap_or_else(|| panic!("{words}: {page}"))
}

fn click(screen: &mut Screen, words: &str) -> String {
    let (column, row) = place(&page(screen, 100, 40), words);
    assert_eq!(screen.event(InputEvent::Pressed { column, row }), None, "{words}");
    page(screen, 100, 40)
}

/// The line of the details about what is selected.
fn selected(page: &str) -> &str {
    let tabs = page.lines().position(|line| line.contains("[1 Details]")).unwrap();
    page.lines().nth(tabs + 1).unwrap()
}

#[test]
fn a_selected_process_stays_it_when_the_list_becomes_a_tree() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Down]);
    let list = page(&mut screen, 100, 40);
    assert!(selected(&list).starts_with("\"4300 "), "{list}");
    for _ in 0..2 {
        press(&mut screen, &[PressedKey::Char('t')]);
        let turned = page(&mut screen, 100, 40);
        assert_eq!(selected(&turned), selected(&list), "{turned}");
    }
}

#[test]
fn left_goes_up_where_there_is_nothing_to_close() {
    let mut screen = screen();
    // Host, pod, user, process, and its first kind.
    let keys = [
        PressedKey::Char('t'),
        PressedKey::Down,
        PressedKey::Down,
        PressedKey::Down,
        PressedKey::Right,
        PressedKey::Down,
    ];
    press(&mut screen, &keys);
    assert!(page(&mut screen, 100, 40).contains("- python3"));
    press(&mut screen, &[PressedKey::Left]);
    assert!(page(&mut screen, 100, 40).contains("- python3"), "it went to the process");
    press(&mut screen, &[PressedKey::Left]);
    assert!(page(&mut screen, 100, 40).contains("+ python3"), "which closed");
    press(&mut screen, &[PressedKey::Left, PressedKey::Left]);
    let shut = page(&mut screen, 100, 40);
    assert!(shut.contains("+ ada (1)"), "and then its user: {shut}");
}

#[test]
fn menus_are_clicked_and_no_click_sends_a_signal() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Function(6)]);
    click(&mut screen, "user       who runs it");
    assert_eq!(screen.settings().sort, Column::Dram, "it is only selected");
    click(&mut screen, "user       who runs it");
    assert_eq!(screen.settings().sort, Column::User);
    press(&mut screen, &[PressedKey::Function(2)]);
    click(&mut screen, "l1         bytes in its L1");
    let hidden = click(&mut screen, "l1         bytes in its L1");
    assert!(hidden.contains("[ ] l1"), "{hidden}");
    let (column, row) = place(&hidden, "[x] pid");
    screen.event(InputEvent::Wheel { up: true, row });
    screen.event(InputEvent::Pressed { column, row });
    assert!(page(&mut screen, 100, 40).contains("[x] pid"), "the wheel went up by one alone");
    // A click beside a menu closes it, and does nothing else.
    screen.event(InputEvent::Pressed { column: 0, row: 20 });
    assert!(!page(&mut screen, 100, 40).contains("Columns ─"));
    press(&mut screen, &[PressedKey::Char('M'), PressedKey::Function(9)]);
    click(&mut screen, "SIGKILL");
    let asks = click(&mut screen, "SIGKILL");
    assert!(asks.contains("Send SIGKILL to 4242?"), "{asks}");
    for words in ["SIGTERM", "SIGKILL", "Send SIGKILL"] {
        let asks = click(&mut screen, words);
        assert!(asks.contains("Send SIGKILL to 4242?"), "{words}: {asks}");
    }
}
