//! The device whose holders alone the processes show: the selected one while keys go to the devices, and longer
//! once it was chosen by a key or a click.

use super::device_rows::DeviceRowId;
use super::view::{Focus, View};

/// A device whose holders alone are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChosenDevice {
    id: String,
    /// Whether it stays when keys go elsewhere.
    is_kept: bool,
}

impl ChosenDevice {
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

impl View {
    /// Selects the device in this place of what is shown, also one that has no row of its own.
    pub(super) fn go_to_device(&mut self, place: usize) {
        let Some(device) = self.shown.as_ref().and_then(|shown| shown.devices.get(place)) else {
            return;
        };
        self.device.seek(DeviceRowId::Device(device.id.clone()));
        self.arrange();
        self.choose_device(true);
    }

    /// Gives idle devices a row each, or one together.
    pub(super) fn turn_idle_devices(&mut self) {
        self.settings.all_devices = !self.settings.all_devices;
        self.arrange();
    }

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

    /// Shows the holders of the selected device alone; those of idle ones are none, so that all stay.
    pub(super) fn choose_device(&mut self, is_kept: bool) {
        let shown = self.shown.as_ref();
        let selected = self.selected_device();
        let device = shown.zip(selected).and_then(|(shown, place)| shown.devices.get(place));
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
