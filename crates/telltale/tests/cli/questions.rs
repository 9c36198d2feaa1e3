//! docs/questions.md, performed: each way that its table has for Telltale is gone on an emulated Galaxy, key by key,
//! click by click and word by word, and the answer is compared with what the test has started there.

mod answers;
mod machine;
mod page;
mod table;
mod terminal;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use telltale_harness::needs_root;

use crate::cli::command::{TIMEOUT, said};
use crate::cli::page::browser::Browser;
use crate::cli::page::fixture::LIVE;
use answers::{ANSWERS, Answer, Moment, Seen};
use machine::Galaxy;
use table::{Place, Question, Way, questions};
use terminal::Terminal;

/// Goes a way until the answer is to be seen at its end; what is to be seen there where it is not.
fn perform(
    galaxy: &Galaxy,
    browser: &mut Browser,
    way: &Way,
    answer: &Answer,
) -> Result<(), String> {
    let mut last = String::new();
    let mut look = |text: String| {
        last = text;
        (answer.is_seen)(galaxy, &Seen { place: way.place, text: &last })
    };
    let found = match way.place {
        Place::Top => {
            let mut command = galaxy.command();
            command.arg("top");
            let terminal = Terminal::start(galaxy.place.path(), &mut command);
            terminal.until("from the service");
            way.steps.iter().for_each(|step| terminal.press(step));
            in_time(|| look(terminal.text()))
        }
        Place::Page => {
            browser.open(&galaxy.address);
            browser.until(LIVE);
            way.steps.iter().for_each(|step| page::click(browser, step));
            in_time(|| look(page::text(browser)))
        }
        Place::Shell => {
            let [line] = &way.steps[..] else { panic!("{way:?} is one command") };
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[0], "telltale", "{line}");
            in_time(|| {
                if answer.moment == Moment::WithoutService {
                    galaxy.age();
                }
                let mut command = galaxy.command();
                look(said(command.args(&words[1..])).out)
            })
        }
    };
    if found { Ok(()) } else { Err(last) }
}

/// Whether this holds within the time that anything may take.
fn in_time(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

#[test]
fn each_way_of_the_table_ends_at_the_answer() {
    let test = "questions::each_way_of_the_table_ends_at_the_answer";
    if !needs_root(test) || !terminal::has_tmux(test) {
        return;
    }
    let Some(mut browser) = Browser::start(test) else { return };
    let (width, height) = page::SIZE;
    browser.window(width, height, false);
    let mut galaxy = Galaxy::start();
    let questions = questions();
    let mut lacking = Vec::new();
    for moment in [Moment::WithoutService, Moment::Now, Moment::AfterAMinute] {
        if moment == Moment::Now {
            galaxy.go_on();
        }
        let asked = questions.iter().map(|question| (question, answer(question)));
        for (question, answer) in asked.filter(|(_, answer)| answer.moment == moment) {
            for way in &question.ways {
                if let Err(shown) = perform(&galaxy, &mut browser, way, answer) {
                    lacking.push(format!("{} {way:?} shows\n{shown}", question.text));
                }
            }
        }
    }
    assert!(lacking.is_empty(), "answers are not to be seen: {}", lacking.join("\n\n"));
}

fn answer(question: &Question) -> &'static Answer {
    let found = ANSWERS.iter().find(|answer| answer.question == question.text);
    found.unwrap_or_else(|| panic!("no test of {:?}", question.text))
}

#[test]
fn each_row_has_a_test_and_each_test_a_row() {
    let rows: Vec<String> = questions().into_iter().map(|one| one.text).collect();
    let tested: BTreeSet<&str> = ANSWERS.iter().map(|one| one.question).collect();
    assert_eq!(rows.iter().map(String::as_str).collect::<BTreeSet<_>>(), tested);
    assert_eq!((rows.len(), ANSWERS.len()), (tested.len(), tested.len()), "each is asked once");
}

#[test]
fn no_way_here_is_the_longest_and_where_others_are_shorter_is_listed() {
    let mut shorter = Vec::new();
    for question in questions() {
        let ours = question.length();
        let others: Vec<usize> = question.others.iter().filter_map(|(_, steps)| *steps).collect();
        let is_longest = others.iter().max().is_some_and(|longest| ours > *longest);
        assert!(!is_longest, "{} takes {ours}, elsewhere {:?}", question.text, question.others);
        if others.iter().any(|steps| *steps < ours) {
            shorter.push(question.text);
        }
    }
    assert_eq!(shorter, table::listed_as_shorter());
}
