//! What a field that differs by device holds for a process as a whole.

use telltale_schema::snapshot::Process;

use crate::field::{Field, Get};
use crate::subject::Value;

impl Field {
    /// What it holds for a process with all its devices: what adds up is added up, and absent where it is not known of
    /// one of them; what does not is that of its only device.
    #[must_use]
    pub fn total<'a>(&self, process: &'a Process) -> Value<'a> {
        if !self.is_by_device() {
            return self.read(Some(process), None, None);
        }
        match process.devices.as_slice() {
            [] => Value::Absent,
            [one] => self.read(Some(process), Some(one), None),
            several if self.adds_up() => {
                let mut sum = 0.0;
                for held in several {
                    match self.read(Some(process), Some(held), None) {
                        Value::Number(number) => sum += number,
                        _ => return Value::Absent,
                    }
                }
                Value::Number(sum)
            }
            _ => Value::Absent,
        }
    }

    fn adds_up(&self) -> bool {
        matches!(
            self.get,
            Get::HeldSpace(_)
                | Get::HeldKind(_)
                | Get::HeldBuffers
                | Get::HeldAllocations
                | Get::HeldFailed
        )
    }
}
