//! What processes and the host use, on the page: read while the page looks, and compared with the kernel.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use telltale_harness::wait_until;

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

/// The cell of the first process in a column of the table.
fn cell(title: &str) -> String {
    format!(
        "(() => {{
            const place = [...document.querySelectorAll('#processes thead th')]
                .findIndex((one) => one.innerText.trim().startsWith('{title}'));
            return document.querySelectorAll('#processes tbody tr:first-child > *')[place]?.innerText ?? '';
        }})()"
    )
}

/// What the panel says of `name`.
fn fact(name: &str) -> String {
    format!(
        "([...document.querySelectorAll('#panel-facts dt')].find((one) => one.textContent.startsWith('{name}'))
            ?.nextElementSibling.textContent ?? '')"
    )
}

/// Whether the service reads what is used, as its answer without a page says.
fn is_read(fixture: &Fixture) -> bool {
    let address = fixture.address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}");
    write!(stream, "GET /api/v1/snapshot HTTP/1.0\r\n{head}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"processes\":[{"), "{answer}");
    answer.contains("cpu_ratio")
}

#[test]
fn what_a_process_uses_is_in_its_row_and_in_its_details() {
    let test = "page::usage::what_a_process_uses_is_in_its_row_and_in_its_details";
    let Some(mut browser) = Browser::start(test) else { return };
    let mut fixture = Fixture::new("n150");
    fixture.work("train", "train", 0);
    fixture.serve("0.3", true, "");
    let browser = &mut browser;
    assert!(!is_read(&fixture), "no page looks yet");
    browser.window(1440, 900, false);
    fixture.open(browser, Some(TOKEN));
    browser.until(&format!("/^[0-9]+ %$/.test({})", cell("CPU")));
    browser.until("/^Host CPU/m.test(document.getElementById('totals').innerText)");
    let totals = browser.text("document.getElementById('totals').innerText");
    assert!(totals.contains("RAM ") && totals.contains(", load "), "{totals}");

    let (_, snapshot) = fixture.reported(browser, Some(TOKEN));
    let process = &snapshot.processes[0];
    let pid = process.pid.unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let resident = *process.usage.as_ref().unwrap().resident_bytes.value().unwrap();
    let of_kernel = line("VmRSS:") * 1024;
    assert!(resident.abs_diff(of_kernel) < of_kernel / 4, "{resident} and {of_kernel}");

    browser.value("document.querySelector('#processes tbody .open').click()");
    browser.until(&format!("{} === '{}'", fact("threads"), line("Threads:")));
    browser.until(&format!("{}.endsWith('/s')", fact("writes to storage")));
    assert_ne!(browser.text(&fact("started")), "");
    assert_eq!(browser.complaints, Vec::<String>::new());

    // The page is gone, and with it what is read for it.
    browser.open("about:blank");
    wait_until("a snapshot without it", Duration::from_secs(30), || !is_read(&fixture));
}
