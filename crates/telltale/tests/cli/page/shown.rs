//! What the tables show is what the service reports.

use std::fs;

use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{HeldUsage, Snapshot};

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};

/// The texts of a table's cells, those of one row in one line; what a cell says beside its value
/// stays out.
fn table(browser: &mut Browser, id: &str) -> Vec<String> {
    let rows = browser.text(&format!(
        "[...document.querySelectorAll('#{id} tbody tr')].map((row) =>
            [...row.children].filter((cell) => !cell.hidden).map((cell) =>
                (cell.querySelector('bdi') ?? cell).textContent).join('|')).join('\\n')"
    ));
    rows.lines().map(str::to_owned).collect()
}

/// Three digits, in the largest unit of 1024 of the one before.
fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < units.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{} {}", digits(value), units[unit]) }
}

fn digits(value: f64) -> String {
    let places = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    // As `toFixed` has it: what is a half exactly goes up, which the formatting alone takes to the even digit.
    // 44.15 is a little less than one.
    let exact = format!("{value:.60}");
    let (_, behind) = exact.split_once('.').unwrap();
    let is_half = behind[places..].trim_end_matches('0') == "5";
    let scale = 10f64.powi(i32::try_from(places).unwrap());
    if is_half {
        format!("{:.places$}", (value * scale).round() / scale)
    } else {
        format!("{value:.places$}")
    }
}

#[test]
fn digits_are_those_of_the_page() {
    let shown = [44.15, 44.25, 44.35, 1.005, 2.5, 0.125, 1023.5].map(digits);
    assert_eq!(shown, ["44.1", "44.3", "44.4", "1.00", "2.50", "0.13", "1024"]);
}

fn of<T: Copy>(used: &Reading<T>, limit: &Reading<T>, show: impl Fn(T) -> String) -> String {
    match (used.value(), limit.value()) {
        (None, _) => String::from("–"),
        (Some(used), None) => show(*used),
        (Some(used), Some(limit)) => format!("{} / {}", show(*used), show(*limit)),
    }
}

fn device_row(snapshot: &Snapshot, place: usize) -> String {
    let device = &snapshot.devices[place];
    let space = |name| {
        let found = device.spaces.iter().find(|space| space.space == name);
        found.map_or(String::from("–"), |space| {
            of(&space.used_bytes, &space.capacity_bytes, bytes)
        })
    };
    let telemetry = &device.telemetry;
    let cells = [
        device.id.to_string(),
        space(MemorySpace::Dram),
        String::new(),
        space(MemorySpace::L1),
        of(&telemetry.temperature_celsius, &telemetry.temperature_limit_celsius, |celsius| {
            format!("{} °C", digits(celsius))
        }),
        of(&telemetry.power_watts, &telemetry.power_limit_watts, |watts| {
            format!("{} W", digits(watts))
        }),
        telemetry
            .aiclk_hertz
            .value()
            .map_or(String::from("–"), |hertz| format!("{} MHz", (*hertz as f64 / 1e6).round())),
        snapshot.holders(place).known.first().map_or(String::from("no process"), |(process, _)| {
            format!("{} {}", process.pid.unwrap(), process.name)
        }),
    ];
    cells.join("|")
}

/// A row for each process and device, those with the most DRAM first. The time since a process
/// began goes on, so it is left out.
fn process_rows(snapshot: &Snapshot) -> Vec<String> {
    let mut rows = Vec::new();
    for process in &snapshot.processes {
        for held in &process.devices {
            let live = |name| {
                let found = held.spaces.iter().find(|space| space.space == name);
                found.map_or(0, |space| space.live_bytes)
            };
            let dram = held.kinds.iter().find(|kind| kind.kind == MemoryKind::Dram);
            let peak = dram.and_then(|dram| match dram.usage {
                HeldUsage::Recorded(usage) => Some(usage.peak_bytes),
                _ => None,
            });
            let cells = [
                process.pid.unwrap().to_string(),
                process.user.value().unwrap().clone(),
                process.name.clone(),
                snapshot.devices[held.device].id.to_string(),
                bytes(live(MemorySpace::Dram)),
                peak.map_or(String::from("–"), bytes),
                bytes(live(MemorySpace::L1)),
                held.live_buffers.map_or(String::from("–"), |buffers| buffers.to_string()),
                String::from("alive"),
            ];
            rows.push((live(MemorySpace::Dram), cells.join("|")));
        }
    }
    rows.sort_by(|(one, _), (other, _)| other.cmp(one));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// A row without what is another at each look: how long it has been up, and what it uses.
fn settled(row: &str) -> String {
    let mut cells: Vec<&str> = row.split('|').collect();
    cells.drain(cells.len() - 4..cells.len() - 1);
    cells.join("|")
}

#[test]
fn devices_and_processes_are_those_of_the_snapshot_sorted_and_filtered() {
    let test = "page::shown::devices_and_processes_are_those_of_the_snapshot_sorted_and_filtered";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n300");
    fixture.work("train", "train", 0);
    fixture.grow(1 << 24);
    fixture.work("evaluate", "evaluate", 1);
    fixture.freeze();
    // Observed at once: nothing changes any more.
    fixture.serve("3600", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length >= 2");
    let (_, reported) = fixture.reported(browser, Some(TOKEN));
    let expected: Vec<String> = (0..2).map(|place| device_row(&reported, place)).collect();
    assert!(expected[0].ends_with(" train"), "{expected:?}");
    assert_eq!(expected.len(), 2);
    assert_eq!(table(browser, "devices"), expected);
    let expected = process_rows(&reported);
    assert!(expected.len() >= 2 && expected[0].contains("iB"), "{expected:?}");
    browser.until("document.querySelector('#processes thead').innerText.includes('RSS')");
    let shown: Vec<String> = table(browser, "processes").iter().map(|row| settled(row)).collect();
    // Rows that are equal in what they are sorted by may stand either way.
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(shown.clone()), sorted(expected.clone()));
    assert_eq!(shown[0], expected[0]);

    // The other way round, by another column, and back.
    let press = |browser: &mut Browser, name: &str| {
        browser.value(&format!(
            "[...document.querySelectorAll('#processes thead button')]
                .find((button) => button.textContent === '{name}').click()"
        ));
    };
    press(browser, "DRAM");
    let order = "document.querySelector('#processes th[aria-sort=ascending]').textContent";
    assert_eq!(browser.text(order), "DRAM");
    let first = table(browser, "processes").last().map(|row| settled(row));
    assert_eq!(first.as_ref(), expected.first());
    press(browser, "Name");
    let names: Vec<String> = table(browser, "processes")
        .iter()
        .map(|row| row.split('|').nth(2).unwrap().to_owned())
        .collect();
    assert!(names.is_sorted() && names.first().unwrap() == "evaluate", "{names:?}");

    browser.value("document.getElementById('filter').focus()");
    browser.write("name == evaluate and device ~ /R$/");
    browser.until("document.getElementById('process-count').textContent === '1 of 2'");
    let rows = table(browser, "processes");
    assert!(!rows.is_empty() && rows.iter().all(|row| row.contains("|evaluate|")), "{rows:?}");
    assert_eq!(browser.text("document.getElementById('device-count').textContent"), "1 of 2");

    // Who has no name is a number, as in the table of `telltale smi`.
    let user = browser.text(
        "import('/assets/processes.js').then(({ columns }) => columns.find((one) => one.name === 'user')
            .cell({ process: { user: { absent: 'unknown' }, uid: { value: 60001 } } }).text)",
    );
    assert_eq!(user, "60001");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn how_busy_devices_are_is_a_column_where_one_of_them_reports() {
    let test = "page::shown::how_busy_devices_are_is_a_column_where_one_of_them_reports";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let headings = "[...document.querySelectorAll('#devices thead th')]
        .filter((heading) => !heading.hidden).map((heading) => heading.textContent).join('|')";
    let mut fixture = Fixture::new("n300");
    fixture.serve("3600", true, "");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#devices tbody tr').length === 2");
    assert!(!browser.text(headings).contains("Busy"), "no chip tells it");
    assert!(!browser.text(headings).contains("PCIe"), "no link is less than it can be");
    fixture.end_service();

    let link = "sys/class/tenstorrent/tenstorrent!0/device/current_link_width";
    fs::write(fixture.root.join(link), "4\n").unwrap();
    fs::write(fixture.root.join("proc/meminfo"), "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n")
        .unwrap();
    let stat = fixture.root.join("proc/stat");
    fs::write(&stat, "cpu 100 0 0 100 0 0 0 0\n").unwrap();
    fixture.serve("0.2", true, "[hardware]\nhost = \"always\"\n");
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#devices tbody tr').length === 3");
    let links = browser.text(
        "[...document.querySelectorAll('#devices td[data-column=\"PCIe link\"]')].map((cell) => cell.textContent).join('|')",
    );
    assert_eq!(links, "4.0 x4 of 4.0 x16||");
    assert!(browser.text(headings).contains("|Clock|Busy|Held by"), "{}", browser.text(headings));
    let row = |rows: &[String], name: &str| {
        let found = rows.iter().find(|row| row.starts_with(name)).cloned();
        found.map(|row| row.split('|').rev().nth(1).unwrap().to_owned())
    };
    assert_eq!(row(&table(browser, "devices"), "host").as_deref(), Some("–"), "one look");
    fs::write(&stat, "cpu 175 0 0 125 0 0 0 0\n").unwrap();
    browser.until("document.querySelector('#devices tr[data-key=host] td[data-column=Busy]').textContent === '75 %'");
    let chips = table(browser, "devices").into_iter().filter(|row| !row.starts_with("host"));
    let reported: Vec<String> =
        chips.map(|row| row.split('|').rev().nth(1).unwrap().to_owned()).collect();
    assert_eq!(reported, ["–", "–"], "no chip tells it");
    // The first service may have ended while the browser loaded its icon.
    browser.complaints.retain(|one| !one.contains("/assets/icon.svg"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}
