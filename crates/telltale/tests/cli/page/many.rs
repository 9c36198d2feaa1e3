//! A machine of the largest kind: 32 chips with 64 processes each. What the page needs for one
//! snapshot is measured and said, not judged: machines differ.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

const CHIPS: usize = 32;
const PROCESSES_OF_A_CHIP: usize = 64;
/// Snapshots that are shown.
const SNAPSHOTS: u64 = 10;

/// A stream of snapshots, which sends what it is given. It stands in for the service's, which would
/// need 2,048 workloads for this.
fn stream() -> (String, Sender<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/stream", listener.local_addr().unwrap());
    let (sender, events) = channel();
    std::thread::spawn(move || tell(&listener, &events));
    (address, sender)
}

fn tell(listener: &TcpListener, events: &Receiver<String>) {
    let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let _: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
    let open = "Access-Control-Allow-Origin: *\r\n\r\n";
    write!(stream, "{head}{open}").unwrap();
    for event in events {
        if stream.write_all(event.as_bytes()).is_err() {
            return;
        }
    }
}

/// The service's snapshot of one process on such a machine, with many more of it.
fn crowded(reported: &Value, round: u64) -> String {
    let mut whole = reported.clone();
    let process = &reported["processes"][0];
    let mut all = Vec::new();
    for chip in 0..CHIPS {
        for number in 0..PROCESSES_OF_A_CHIP {
            let mut one = process.clone();
            let pid = 10_000 + chip * PROCESSES_OF_A_CHIP + number;
            one["pid"] = pid.into();
            one["identity"]["pid"] = pid.into();
            one["devices"].as_array_mut().unwrap().truncate(1);
            let held = &mut one["devices"][0];
            held["device"] = chip.into();
            let seed = u64::try_from(pid).unwrap() * 7919 + round * 104_729;
            for space in held["spaces"].as_array_mut().unwrap() {
                space["live_bytes"] = (seed % 4096 * 65_536).into();
            }
            held["live_buffers"] = (seed % 997).into();
            all.push(one);
        }
    }
    whole["processes"] = Value::Array(all);
    let moment = reported["taken_at"].as_u64().unwrap() + round * 1_000_000_000;
    whole["taken_at"] = moment.into();
    format!("id: {round}\nevent: snapshot\ndata: {whole}\n\n")
}

/// Seconds that the page's thread has worked since it was opened, and those of them for layout.
fn spent(browser: &mut Browser) -> [f64; 2] {
    let reported = browser.call("Performance.getMetrics", json!({}));
    let of = |name: &str| {
        let all = reported["metrics"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["value"].as_f64().unwrap()
    };
    [of("TaskDuration"), of("LayoutDuration") + of("RecalcStyleDuration")]
}

#[test]
fn thirty_two_chips_with_64_processes_each_are_shown() {
    let test = "page::many::thirty_two_chips_with_64_processes_each_are_shown";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("galaxy-wormhole");
    fixture.work("train", "train", 0);
    fixture.serve("3600", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length >= 1");
    let (reported, _) = fixture.reported(browser, Some(TOKEN));
    assert_eq!(reported["devices"].as_array().unwrap().len(), CHIPS);

    let (address, events) = stream();
    browser.stream = Some(address);
    browser.open(&fixture.address.clone());
    events.send(crowded(&reported, 0)).unwrap();
    let rows = CHIPS * PROCESSES_OF_A_CHIP;
    let shown = "document.querySelectorAll('#processes tbody tr').length";
    browser.until(&format!("{shown} === 200"));
    let count = browser.text("document.getElementById('process-count').textContent");
    assert_eq!(count, rows.to_string());
    let before = spent(browser);
    for round in 1..=SNAPSHOTS {
        let first =
            "document.querySelector('#processes tbody td[data-column=Buffers]').textContent";
        let last = browser.text(first);
        events.send(crowded(&reported, round)).unwrap();
        browser.until(&format!("{first} !== '{last}'"));
        // A frame later it is on the screen as well.
        browser.until(&format!("{first} !== '{last}'"));
        browser.value(
            "new Promise((shown) => requestAnimationFrame(() => setTimeout(() => shown(1))))",
        );
    }
    let after = spent(browser);
    let each = |place: usize| (after[place] - before[place]) * 1000.0 / SNAPSHOTS as f64;
    eprintln!(
        "200 of {rows} rows, each another one: {:.0} ms for a snapshot, {:.0} ms of them for layout",
        each(0),
        each(1),
    );
    let used = browser.value("performance.memory?.usedJSHeapSize ?? 0").as_f64().unwrap() / 1e6;
    eprintln!("the page's objects: {used:.0} MB");
    let more = "document.querySelector('#processes + .more')";
    assert!(browser.text(&format!("{more}.textContent")).contains("200 of 2048 rows"));
    browser.value(&format!("{more}.click()"));
    assert_eq!(browser.value(shown), rows);
    browser.value("document.getElementById('filter').focus()");
    // The service says which rows a filter wants, and it knows of one.
    browser.write("name == train");
    browser.until(&format!("{shown} === 1"));
    assert_eq!(browser.value(&format!("{more}.hidden")), true);
    assert_eq!(browser.complaints, Vec::<String>::new());
}
