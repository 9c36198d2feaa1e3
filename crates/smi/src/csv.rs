//! Comma-separated values (RFC 4180): one row a device, or one a process, device and kind, each
//! with the time of its snapshot. Raw numbers in base units, names as in JSON; an absent value is an
//! empty field. What could steer a terminal becomes `?`, since such output is often checked.

use telltale_schema::history::HistoryAnswer;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::Reading;
use telltale_schema::sensor::{SENSORS, Sensor, SensorValue};
use telltale_schema::snapshot::{Device, ProcessSource, Snapshot};
use telltale_schema::text::printable;

use crate::rows;

/// The columns of [`devices`] before its sensors.
const IDENTITY: [&str; 5] = ["taken_at_unix_ns", "id", "board_type", "architecture", "pci_address"];
/// Those after them.
const MEMORY: [&str; 5] =
    ["dram_used_bytes", "dram_capacity_bytes", "l1_used_bytes", "l1_capacity_bytes", "faults"];

/// The names of the columns of [`processes`], as one row.
pub const PROCESSES_HEADING: &str = "taken_at_unix_ns,pid,user,name,command,state,device,kind,\
    live_bytes,peak_bytes,live_buffers,allocations,allocated_bytes,failed_allocations,\
    accounting,known_by\r\n";

/// The names of the columns of [`history`], as one row.
const HISTORY_HEADING: &str = "from_unix_ns,step_ms,metric,label,device,pid,identity,user,command,least,mean,greatest,absent\r\n";

const FAULTS_HEADING: &str =
    "since_unix_ns,until_unix_ns,last_seen_unix_ns,state,device,part,rule,cause\r\n";

/// The sensors that rows of devices have.
fn sensors() -> impl Iterator<Item = &'static Sensor> {
    SENSORS.iter().filter(|sensor| sensor.is_csv)
}

/// The names of the columns of [`devices`], as one row.
pub fn devices_heading() -> String {
    let sensors = sensors().map(|sensor| sensor.field);
    let names = IDENTITY.into_iter().chain(sensors).chain(MEMORY).map(str::to_owned);
    let mut text = String::new();
    row(&names.collect::<Vec<_>>(), &mut text);
    text
}

/// One row for each device.
pub fn devices(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for device in &snapshot.devices {
        let telemetry = &device.telemetry;
        let architecture = device.architecture().map(|architecture| architecture.code_name());
        let mut fields = vec![
            snapshot.taken_at.0.to_string(),
            device.id.clone(),
            device.identity.product().to_owned(),
            architecture.unwrap_or_default().to_owned(),
            device.identity.pci().map(|pci| pci.to_string()).unwrap_or_default(),
        ];
        fields.extend(sensors().map(|sensor| match sensor.value(telemetry) {
            Some(SensorValue::Float(value)) => value.to_string(),
            Some(SensorValue::Whole(value)) => value.to_string(),
            None => String::new(),
        }));
        fields.extend([
            used(device, MemorySpace::Dram),
            capacity(device, MemorySpace::Dram),
            used(device, MemorySpace::L1),
            capacity(device, MemorySpace::L1),
            device.fault_names().unwrap_or_default(),
        ]);
        row(&fields, &mut text);
    }
    text
}

/// One row for each process, device and kind of memory; one without a kind for a device where no
/// kind is mentioned, and one without a device for a process that has none. How much is known of
/// the device's memory is in `accounting`, and the sources that know the process in `known_by`.
pub fn processes(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for process in &snapshot.processes {
        let user = match process.user.value() {
            Some(user) => user.clone(),
            None => value(&process.uid),
        };
        let who = [
            snapshot.taken_at.0.to_string(),
            process.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            user,
            process.name.clone(),
            value(&process.command),
            process.state.name().to_owned(),
        ];
        for held in rows::devices(&process.devices) {
            let device = held.and_then(|held| snapshot.devices.get(held.device));
            let accounting = held.map_or("", |held| held.accounting.name());
            let known_by = process.known_by.map_or("", ProcessSource::name);
            for line in rows::lines(held) {
                let numbers = [
                    line.live_bytes(),
                    line.recorded(|usage| usage.peak_bytes),
                    line.recorded(|usage| usage.live_buffers),
                    line.recorded(|usage| usage.allocations),
                    line.recorded(|usage| usage.allocated_bytes),
                    line.recorded(|usage| usage.failed_allocations),
                ];
                let numbers = numbers.map(|number| number.map(|it| it.to_string()));
                let mut fields = who.to_vec();
                fields.push(device.map(|device| device.id.clone()).unwrap_or_default());
                fields.push(line.kind.map_or("", MemoryKind::name).to_owned());
                fields.extend(numbers.map(Option::unwrap_or_default));
                fields.push(accounting.to_owned());
                fields.push(known_by.to_owned());
                row(&fields, &mut text);
            }
        }
    }
    text
}

/// A heading, and a row for each fault, the newest last.
pub fn past_faults(answer: &HistoryAnswer) -> String {
    let mut text = String::from(FAULTS_HEADING);
    for past in answer.faults.iter().rev() {
        let fields = [
            past.fault.since.0.to_string(),
            past.until.map(|until| until.0.to_string()).unwrap_or_default(),
            past.last_seen.0.to_string(),
            past.fault.kind.state().name().to_owned(),
            past.device.clone().unwrap_or_default(),
            past.fault.part.clone(),
            past.fault.kind.name().to_owned(),
            past.fault.detail.clone(),
        ];
        row(&fields, &mut text);
    }
    text
}

fn value<T: ToString>(reading: &Reading<T>) -> String {
    reading.value().map(T::to_string).unwrap_or_default()
}

/// A heading, and a row for each series and span of which something is known.
pub fn history(answer: &HistoryAnswer) -> String {
    let mut text = String::from(HISTORY_HEADING);
    for series in &answer.series {
        let process = series.process.as_ref();
        let whose = [
            series.metric.clone(),
            // With its name: the space and the kind `dram` have the same bytes, and are not to be added up.
            series
                .label
                .as_ref()
                .map(|(name, value)| format!("{name}={value}"))
                .unwrap_or_default(),
            series.device.clone().unwrap_or_default(),
            process.and_then(|process| process.pid).map(|pid| pid.to_string()).unwrap_or_default(),
            process.map(|process| process.key.clone()).unwrap_or_default(),
            process.and_then(|process| process.user.clone()).unwrap_or_default(),
            process.and_then(|process| process.command.clone()).unwrap_or_default(),
        ];
        let number = |column: &[Option<f64>], place: usize| {
            column.get(place).copied().flatten().map(|value| value.to_string()).unwrap_or_default()
        };
        let mut at_ns = answer.from.0;
        for place in 0..answer.points {
            let absent = series.absent.get(place).copied().flatten();
            let mean = number(&series.mean, place);
            if !mean.is_empty() || absent.is_some() {
                let mut fields = vec![at_ns.to_string(), answer.step_ms.to_string()];
                fields.extend(whose.clone());
                fields.extend([
                    number(&series.least, place),
                    mean,
                    number(&series.greatest, place),
                ]);
                fields.push(absent.map(|reason| reason.words().to_owned()).unwrap_or_default());
                row(&fields, &mut text);
            }
            at_ns = at_ns.saturating_add(answer.step_ms.saturating_mul(1_000_000));
        }
    }
    text
}

fn used(device: &Device, space: MemorySpace) -> String {
    device.space(space).map(|usage| value(&usage.used_bytes)).unwrap_or_default()
}

fn capacity(device: &Device, space: MemorySpace) -> String {
    device.space(space).map(|usage| value(&usage.capacity_bytes)).unwrap_or_default()
}

pub(crate) fn row(fields: &[String], to: &mut String) {
    for (place, field) in fields.iter().enumerate() {
        if place > 0 {
            to.push(',');
        }
        to.push_str(&quoted(&printable(field)));
    }
    to.push_str("\r\n");
}

/// One field as it stands in a row.
pub fn field(text: &str) -> String {
    quoted(&printable(text))
}

fn quoted(field: &str) -> String {
    // A leading =, +, - or @ is a formula to spreadsheets; numbers of ours are never negative.
    let formula = field.starts_with(['=', '+', '-', '@', '\t']);
    let safe = if formula { format!("'{field}") } else { field.to_owned() };
    match safe.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", safe.replace('"', "\"\"")),
        false => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_cannot_break_a_row_or_start_a_formula() {
        let cases = [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"\n", "\"say \"\"x\"\"\n\""),
            ("=cmd()", "'=cmd()"),
            ("", ""),
        ];
        for (field, text) in cases {
            assert_eq!(quoted(field), text);
        }
    }
}
