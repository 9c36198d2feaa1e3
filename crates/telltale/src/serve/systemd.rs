//! What the service reports to systemd: that it is ready, reloads, ends, and still lives (sd_notify(3)).
//!
//! Without systemd nothing is notified.

use std::future::pending;
use std::time::Duration;
use tracing::{error, warn};

use sd_notify::NotifyState;
use telltale_node::service::View;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Tells systemd.
pub(super) struct Notifier {
    /// When it wants to hear that we live, if it does.
    watchdog: Option<Interval>,
    /// It was notified that the collecting thread is stuck.
    stuck: bool,
}

// === impl Notifier ===

impl Notifier {
    /// As systemd wishes by its variables. Needs a tokio runtime with time.
    pub(super) fn from_environment() -> Self {
        let watchdog = sd_notify::watchdog_enabled().map(|limit| {
            // Twice as often as it must be (sd_watchdog_enabled(3)).
            let mut ticks = interval((limit / 2).max(Duration::from_millis(10)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Self { watchdog, stuck: false }
    }

    /// The service answers.
    pub(super) fn ready(&self, view: &View) {
        tell(&[NotifyState::Ready, NotifyState::Status(&status(view))]);
    }

    /// The service reads its configuration again; [`Self::ready`] follows.
    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(_) => tell(&[NotifyState::Reloading]),
        }
    }

    /// The service ends.
    pub(super) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }

    /// Waits until systemd is to hear from us again; for ever where it does not want to.
    pub(super) async fn due(&mut self) {
        match &mut self.watchdog {
            Some(ticks) => {
                ticks.tick().await;
            }
            None => pending().await,
        }
    }

    /// Says that the service lives, which it does as long as its collecting thread does. When that
    /// is stuck systemd hears nothing and starts the service again.
    pub(super) fn alive(&mut self, view: &View) {
        if view.is_alive() {
            self.stuck = false;
            tell(&[NotifyState::Watchdog, NotifyState::Status(&status(view))]);
        } else if !self.stuck {
            self.stuck = true;
            error!("the collecting thread is stuck in a read that no signal ends");
        }
    }
}

/// What `systemctl status` shows.
fn status(view: &View) -> String {
    let latest = view.latest();
    let (devices, processes) = (latest.snapshot.devices.len(), latest.snapshot.processes.len());
    format!("Devices: {devices}, processes: {processes}, collections: {}", latest.sequence)
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("cannot notify systemd of the service's state: {error}");
    }
}
