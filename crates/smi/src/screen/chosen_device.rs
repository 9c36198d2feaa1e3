//! The device whose holders alone the processes show: the selected one while keys go to the devices, and longer
//! once it was chosen by a key or a click.

use super::view::{Focus, View};

/// A device whose holders alone are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChosenDevice {
    id: String,
    /// Whether it stays when keys go elsewhere.
    is_kept: bool,
}

impl View {
    /// The place of the device whose holders alone are shown, if it is one of those that are shown.
    pub(super) fn chosen_device(&self) -> Option<usize> {
        let chosen = self.chosen_device.as_ref()?;
        let shown = self.shown.as_ref()?;
        shown.devices.iter().position(|device| device.id == chosen.id)
    }

    /// Has keys go to another pane.
    pub(super) fn set_focus(&mut self, focus: Focus) {
        self.focus = focus;
        match (focus, &self.chosen_device) {
            (Focus::Devices, None) => self.choose_device(false),
            (Focus::Processes | Focus::Pane, Some(chosen)) if !chosen.is_kept => self.show_all(),
            _ => {}
        }
    }

    /// Shows the holders of the selected device alone.
    pub(super) fn choose_device(&mut self, is_kept: bool) {
        let shown = self.shown.as_ref();
        let device = shown.and_then(|shown| shown.devices.get(self.device.at()));
        self.chosen_device = device.map(|device| ChosenDevice { id: device.id.clone(), is_kept });
        self.arrange();
    }

    /// Shows the processes of all devices. Gives whether it did not.
    pub(super) fn show_all_devices(&mut self) -> bool {
        let was_chosen = self.chosen_device.is_some();
        if was_chosen {
            self.show_all();
            if self.focus == Focus::Devices {
                self.focus = Focus::Processes;
            }
        }
        was_chosen
    }

    fn show_all(&mut self) {
        self.chosen_device = None;
        self.arrange();
    }
}
