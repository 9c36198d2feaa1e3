//! How long it takes from a system that has only its package manager to the first screen, beside what people know.
//! Nothing here fails for being slow: it prints, and docs/benchmarks has what it printed.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use telltale_harness::ChildGuard;

use super::made::{is_tried, made};
use super::system::System;

const ROUNDS: usize = 5;
/// More than a screen's worth of what a program that takes the terminal begins with.
const SCREEN_BYTES: usize = 400;

/// A way to have a program.
struct Way {
    name: &'static str,
    /// What is there before.
    packages: &'static [&'static str],
    install: &'static str,
    screen: &'static str,
    /// What is on it when it is of use; how many bytes, of others' programs.
    shown: Option<&'static str>,
}

const WAYS: [Way; 4] = [
    Way {
        name: "telltale, deb",
        packages: &[],
        install: "apt-get install -y --no-install-recommends /packages/telltale_*.deb",
        screen: "telltale top",
        shown: Some("CPU"),
    },
    Way {
        name: "telltale, wheel",
        packages: &["python3-venv"],
        install: "/venv/bin/pip install --no-index /packages/telltale-*.whl",
        screen: "/venv/bin/telltale top",
        shown: Some("CPU"),
    },
    Way {
        name: "btop, deb",
        packages: &[],
        install: "apt-get install -y --no-install-recommends btop",
        screen: "btop --utf-force",
        shown: None,
    },
    Way {
        name: "nvitop, wheel",
        packages: &["python3-venv"],
        install: "/venv/bin/pip install nvitop",
        screen: "/venv/bin/nvitop",
        shown: None,
    },
];

#[test]
fn from_nothing_to_the_first_screen() {
    if !is_tried("first_screen::from_nothing_to_the_first_screen") {
        return;
    }
    println!(
        "{:16} {:>8} {:>8} {:>8}   seconds to the first screen, of {ROUNDS}",
        "", "median", "least", "most"
    );
    for way in &WAYS {
        let mut seconds: Vec<f64> = (0..ROUNDS).map(|_| way.time().as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let [least, .., most] = seconds[..] else { panic!("{seconds:?}") };
        println!("{:16} {:8.2} {least:8.2} {most:8.2}", way.name, seconds[ROUNDS / 2]);
    }
}

// === impl Way ===

impl Way {
    fn time(&self) -> Duration {
        let system = System::debian("bookworm", self.packages);
        for (begin, end) in [("telltale_", "_amd64.deb"), ("telltale-", "x86_64.whl")] {
            system.put(&made(begin, end), "/packages");
        }
        if self.packages.contains(&"python3-venv") {
            system.ok("python3 -m venv /venv");
        }
        let script = format!(
            "stty rows 40 columns 120; {} >/install.log 2>&1 && : >/installed && exec {}",
            self.install, self.screen
        );
        let mut command =
            system.command(&format!("exec script --quiet --command '{script}' /dev/null"));
        let begun = Instant::now();
        let mut terminal = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut screen = terminal.child().stdout.take().unwrap();
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let read = screen.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&seen);
            let is_shown = match self.shown {
                Some(word) => text.contains(word),
                // One that ends at once, as without a driver, has shown all that it has.
                None => seen.len() > SCREEN_BYTES || read == 0,
            };
            let elapsed = begun.elapsed();
            let is_installed = system.path("/installed").exists();
            let log = || std::fs::read_to_string(system.path("/install.log"));
            assert!(read > 0 || (is_shown && is_installed), "{}: {text}\n{:?}", self.name, log());
            if is_shown {
                return elapsed;
            }
        }
    }
}
