//! The page of a process: its whole command line and its environment.

use std::sync::Arc;

use telltale_schema::snapshot::ProcessState;
use telltale_smi::screen::{
    Action, InputEvent, PressedKey, ProcessTarget, ProcessTexts, Screen, ViewSettings,
};

use crate::golden::check;
use crate::golden::screens::{machine, page, press, screen_with, terms};

fn screen() -> Screen {
    screen_with(ViewSettings::default(), terms(), machine())
}

#[test]
fn a_process_has_a_page_with_its_whole_command_and_its_environment() {
    let mut screen = screen();
    let asked = screen.event(InputEvent::Key(PressedKey::Char('E')));
    let Some(Action::ReadTexts(of)) = asked else { panic!("{asked:?}") };
    assert_eq!(of.pid, 4242);
    assert!(page(&mut screen, 80, 24).contains("it is being read"));
    let another = ProcessTarget { pid: 4243, ..of };
    let texts = |command: Option<&str>, variables: &[&str]| ProcessTexts {
        command: command.map(String::from),
        environment: Ok(variables.iter().map(|one| String::from(*one)).collect()),
        is_environment_cut: false,
    };
    screen.set_texts(another, texts(None, &["SECRET=1"]));
    assert!(!page(&mut screen, 80, 24).contains("SECRET"), "it is of another process");
    screen.set_texts(of, texts(None, &["PATH=/usr/bin", "TT_VISIBLE_DEVICES=0,1"]));
    check("screen-process", &page(&mut screen, 80, 24));
    press(&mut screen, &[PressedKey::Escape, PressedKey::Char('E')]);
    screen.set_texts(of, ProcessTexts { is_environment_cut: true, ..texts(None, &["A=1"]) });
    let cut = page(&mut screen, 80, 24);
    assert!(cut.contains("Environment, the first 1 variables:"), "{cut}");
    press(&mut screen, &[PressedKey::Escape, PressedKey::End, PressedKey::Char('E')]);
    let hidden = page(&mut screen, 80, 24);
    assert!(hidden.contains("cannot be seen from here"), "{hidden}");
    press(&mut screen, &[PressedKey::Escape, PressedKey::Home, PressedKey::Char('E')]);
    let argument = "x".repeat(5_000);
    screen.set_texts(of, texts(Some(&format!("python3 {argument} last")), &[]));
    let whole = page(&mut screen, 170, 80);
    assert!(whole.contains("Environment: it has none."), "{whole}");
    let cells = whole.chars().filter(|character| *character == 'x').count();
    assert!(cells >= argument.len() && whole.contains("last"), "{whole}");
    // As long as one can be: each line is measured once.
    press(&mut screen, &[PressedKey::Escape, PressedKey::Char('E')]);
    screen.set_texts(of, texts(Some(&format!("{} end", "y".repeat(512 * 1024))), &[]));
    press(&mut screen, &[PressedKey::End]);
    let end = page(&mut screen, 80, 24);
    assert!(end.contains("yyy") && end.contains("it has none"), "{end}");
}

#[test]
fn the_page_of_a_process_says_that_it_has_ended() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Char('E')]);
    let mut later = machine();
    screen.update(Arc::new(later.clone()), later.taken_at);
    assert!(!page(&mut screen, 80, 24).contains("It has ended"), "it still runs");
    later.processes[0].state = ProcessState::Dead;
    screen.update(Arc::new(later.clone()), later.taken_at);
    assert!(page(&mut screen, 80, 24).contains("It has ended."));
    later.processes.remove(0);
    screen.update(Arc::new(later.clone()), later.taken_at);
    assert!(page(&mut screen, 80, 24).contains("It has ended, or has no device open any more."));
}
