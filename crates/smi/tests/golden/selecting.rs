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

/// The rows of processes.
fn rows(page: &str) -> Vec<&str> {
    let of_table = page.lines().skip_while(|line| !line.contains("PID USER")).skip(1);
    let rows = of_table.take_while(|line| !line.contains("[1 Details]"));
    rows.filter(|line| line.chars().any(char::is_alphanumeric)).collect()
}

#[test]
fn a_chosen_device_shows_its_holders_alone() {
    let mut screen = screen();
    let all = page(&mut screen, 100, 40);
    press(&mut screen, &[PressedKey::Tab]);
    let local = page(&mut screen, 100, 40);
    assert!(selected(&local).contains("held by  4242 py?thon3 (ada) "), "{local}");
    assert!(local.contains("On 251732099 (Esc: all)"), "{local}");
    press(&mut screen, &[PressedKey::Down]);
    let remote = page(&mut screen, 100, 40);
    assert!(remote.contains("On 251732099R (Esc: all)"), "{remote}");
    let is_of = |device: &str, page: &str| {
        let rows = rows(page);
        !rows.is_empty() && rows.iter().all(|row| row.contains(&format!(" {device} ")))
    };
    assert!(is_of("251732099", &local) && is_of("251732099R", &remote), "{local}{remote}");
    // Kept once it was chosen, until Esc.
    press(&mut screen, &[PressedKey::Enter, PressedKey::Down]);
    let kept = page(&mut screen, 100, 40);
    assert_eq!(rows(&kept), rows(&remote), "{kept}");
    press(&mut screen, &[PressedKey::Escape]);
    assert_eq!(rows(&page(&mut screen, 100, 40)), rows(&all));
    // Passing by with Tab chooses nothing.
    press(&mut screen, &[PressedKey::Tab, PressedKey::Tab]);
    assert_eq!(rows(&page(&mut screen, 100, 40)), rows(&all));
}

#[test]
fn a_click_on_a_device_and_then_on_a_holder_keeps_the_holders() {
    let mut screen = screen();
    let chosen = click(&mut screen, "251732099R");
    let row = rows(&chosen)[0].to_owned();
    let pid = row.trim_start_matches(['"', ' ']).split(' ').next().unwrap().to_owned();
    let held = click(&mut screen, &format!("{pid} "));
    assert_eq!(rows(&held), rows(&chosen), "{held}");
    assert!(selected(&held).starts_with(&format!("\"{pid} ")), "{held}");
}

#[test]
fn the_tree_of_a_chosen_device_has_what_is_on_it() {
    let mut screen = screen();
    press(
        &mut screen,
        &[PressedKey::Char('t'), PressedKey::Tab, PressedKey::Down, PressedKey::Enter],
    );
    let tree = page(&mut screen, 100, 40);
    assert!(!tree.contains("py?thon3"), "4242 has nothing on the second chip: {tree}");
}

#[test]
fn the_details_of_a_device_have_what_goes_over_its_link_and_its_numa_node() {
    let mut screen = screen_with(ViewSettings::default(), terms(), machine());
    press(&mut screen, &[PressedKey::Tab]);
    let page = page(&mut screen, 190, 50);
    let link = "PCIe received 1.5 GiB/s  NUMA node 1";
    assert!(page.lines().any(|line| line.contains(link)), "{page}");
}
