//! `telltale top` in a terminal of tmux, which has its own server on a socket of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use telltale_harness::{skip, wait_until};

use crate::cli::command::TIMEOUT;

/// Columns and rows of a terminal that fills a screen of 1920 × 1080 pixels.
pub(super) const SIZE: (u16, u16) = (190, 50);

/// Whether there is tmux; if not, `test` was recorded as skipped.
pub(super) fn has_tmux(test: &str) -> bool {
    let version = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
    let found = version.is_ok_and(|status| status.success());
    if !found {
        skip(test, "needs tmux");
    }
    found
}

/// A terminal and what runs in it; both end with this.
pub(super) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Runs `command` in a new terminal, for a user who has never changed a setting. What it needs is in a
    /// directory of its own in `place`: an earlier server may be about to end.
    pub(super) fn start(place: &Path, command: &mut Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let own = place.join(format!("terminal-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&own).unwrap();
        command.env("XDG_CONFIG_HOME", &own);
        let socket = own.join("tmux");
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&socket).args(["-f", "/dev/null", "new-session", "-d"]);
        tmux.args(["-x", &SIZE.0.to_string(), "-y", &SIZE.1.to_string()]);
        command.env("LC_ALL", "C.UTF-8");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => tmux.env(name, value),
                None => tmux.env_remove(name),
            };
        }
        tmux.arg(command.get_program()).args(command.get_args());
        // Without a status line all rows are the command's.
        tmux.args([";", "set", "-g", "status", "off", ";", "set", "-g", "escape-time", "0"]);
        assert!(tmux.env_remove("TMUX").status().unwrap().success(), "{tmux:?}");
        Self { socket }
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(&self.socket).args(arguments).env_remove("TMUX");
        let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses a key with a name, such as `Tab`, or types what is none.
    pub(super) fn press(&self, step: &str) {
        match step {
            "Tab" | "Enter" | "Escape" | "PageDown" | "Up" | "Down" | "Left" | "Right" => {
                self.tmux(&["send-keys", step])
            }
            _ if step.len() == 2 && step.starts_with('F') => self.tmux(&["send-keys", step]),
            _ => self.tmux(&["send-keys", "-l", step]),
        };
    }

    /// What is on the screen now.
    pub(super) fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits for a part of the screen.
    pub(super) fn until(&self, part: &str) {
        wait_until(part, TIMEOUT, || self.text().contains(part));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ = command.arg("-S").arg(&self.socket).arg("kill-server").status();
    }
}
