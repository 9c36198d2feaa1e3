//! What `nvidia-smi` says: fields of GPUs, its XML, its NVLinks and processes.
//!
//! All of it is text of another program: bounded, and what is not understood is an error or has no value.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use telltale_schema::chip::PciAddress;

use super::child;

/// How long one call may take: without a process that keeps the GPUs awake, the driver starts them first.
const TIMEOUT: Duration = Duration::from_secs(60);

/// GPUs and processes that are looked at.
const MAX_GPUS: usize = 64;
const MAX_PROCESSES: usize = 4096;

/// The field by which a GPU is found.
pub(super) const ADDRESS: &str = "pci.bus_id";

/// One look at all GPUs.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) gpus: BTreeMap<PciAddress, GpuText>,
    /// Fields that this driver's `nvidia-smi` does not know.
    pub(super) unknown: BTreeSet<String>,
}

/// What one look says of a GPU.
#[derive(Debug, Default)]
pub(super) struct GpuText {
    pub(super) fields: BTreeMap<&'static str, String>,
    /// Its part of `nvidia-smi -q -x`.
    pub(super) xml: String,
    /// Links that are up; none where it lists no link.
    pub(super) links_up: Option<u64>,
    /// Bytes of each process that computes, by pid; none where they are not known.
    pub(super) processes: BTreeMap<u32, Option<u64>>,
}

/// Looks at all GPUs once.
pub(super) fn look(fields: &[&'static str]) -> Result<Look, String> {
    let xml = ask(&["-q", "-x"])?;
    let links = ask(&["nvlink", "-s"]).unwrap_or_default();
    let apps = ask(&[
        "--query-compute-apps=gpu_bus_id,pid,used_gpu_memory",
        "--format=csv,noheader,nounits",
    ])?;
    let mut look = query(fields)?;
    for (address, text) in xml_by_gpu(&xml) {
        if let Some(gpu) = look.gpus.get_mut(&address) {
            gpu.xml = text.to_owned();
        }
    }
    for gpu in look.gpus.values_mut() {
        let uuid = gpu.fields.get("uuid").map_or("", String::as_str);
        gpu.links_up = links_up(&links, uuid);
    }
    for (address, pid, bytes) in compute_apps(&apps)? {
        if let Some(gpu) = look.gpus.get_mut(&address) {
            gpu.processes.insert(pid, bytes);
        }
    }
    Ok(look)
}

/// Asks for fields of each GPU, without those that this driver does not know.
fn query(fields: &[&'static str]) -> Result<Look, String> {
    let mut fields: Vec<&'static str> = fields.to_vec();
    let mut unknown = BTreeSet::new();
    loop {
        let wanted = format!("--query-gpu={}", fields.join(","));
        let output = call(&[&wanted, "--format=csv,noheader,nounits"])?;
        // Some drivers refuse it on stderr, and end with 0.
        let refused = refused_field(&output.out).or_else(|| refused_field(&output.err));
        let known = fields.len();
        if let Some(refused) = refused {
            fields.retain(|field| *field != refused);
            unknown.insert(refused.to_owned());
            if fields.len() < known {
                continue;
            }
        }
        if !output.status.success() {
            return Err(format!("nvidia-smi fails: {}", output.complaint()));
        }
        return Ok(Look { gpus: parse(&fields, &output.out)?, unknown });
    }
}

/// The field that is named as unknown.
fn refused_field(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.contains("is not a valid field"))?;
    line.split('"').nth(1)
}

/// Its output, where it succeeds.
fn ask(arguments: &[&str]) -> Result<String, String> {
    let output = call(arguments)?;
    match output.status.success() {
        true => Ok(output.out),
        false => Err(format!("nvidia-smi {} fails: {}", arguments.join(" "), output.complaint())),
    }
}

fn call(arguments: &[&str]) -> Result<child::Output, String> {
    child::run(Command::new("nvidia-smi").args(arguments), TIMEOUT)
}

/// Lines of values, as many as fields, of one GPU each.
fn parse(fields: &[&'static str], text: &str) -> Result<BTreeMap<PciAddress, GpuText>, String> {
    let mut gpus = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(MAX_GPUS) {
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        if values.len() != fields.len() {
            let (found, wanted) = (values.len(), fields.len());
            return Err(format!(
                "nvidia-smi gave {found} values for {wanted} fields: {}",
                cut(line)
            ));
        }
        let owned = values.iter().map(|value| (*value).to_owned());
        let fields: BTreeMap<&'static str, String> = fields.iter().copied().zip(owned).collect();
        let address = fields.get(ADDRESS).map_or("", String::as_str);
        let address: PciAddress =
            address.parse().map_err(|error| format!("nvidia-smi: {error}"))?;
        gpus.insert(address, GpuText { fields, ..GpuText::default() });
    }
    match gpus.is_empty() {
        true => Err(format!("nvidia-smi shows no GPU: {}", cut(text))),
        false => Ok(gpus),
    }
}

/// A value, or none where a GPU has no such thing: `[N/A]`, `[Not Supported]`.
pub(super) fn value(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_none = text.is_empty()
        || text.starts_with('[')
        || matches!(text, "N/A" | "Not Supported" | "Unknown Error");
    (!is_none).then_some(text)
}

/// The part of each GPU, from its tag to that of the next one.
fn xml_by_gpu(xml: &str) -> Vec<(PciAddress, &str)> {
    let parts = xml.split("<gpu id=\"").skip(1).take(MAX_GPUS);
    let of_gpu = |part: &'_ str| part.split_once('"').and_then(|(id, _)| id.parse().ok());
    parts.filter_map(|part| Some((of_gpu(part)?, part))).collect()
}

/// The first value of a tag.
pub(super) fn tagged<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    rest.split_once("</").map(|(text, _)| text.trim())
}

/// Links of the GPU with this UUID that are up, in the output of `nvidia-smi nvlink -s`.
fn links_up(text: &str, uuid: &str) -> Option<u64> {
    let mut lines =
        text.lines().skip_while(|line| !(line.starts_with("GPU ") && line.contains(uuid)));
    lines.next().filter(|_| !uuid.is_empty())?;
    let of_gpu: Vec<&str> =
        lines.take_while(|line| !line.starts_with("GPU ")).map(str::trim).collect();
    let is_down = |line: &&&str| line.to_lowercase().contains("inactive");
    let links = of_gpu.iter().filter(|line| line.starts_with("Link "));
    let (up, links) = (links.clone().filter(|line| !is_down(line)).count(), links.count());
    // Where none is up, one sentence says so in place of a list.
    let has_links = links > 0 || of_gpu.iter().any(|line| is_down(&line));
    has_links.then(|| u64::try_from(up).unwrap_or(u64::MAX))
}

/// Address, pid and bytes of each process.
fn compute_apps(text: &str) -> Result<Vec<(PciAddress, u32, Option<u64>)>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_PROCESSES);
    let mut found = Vec::new();
    for line in lines {
        let mut values = line.split(',').map(str::trim);
        let address = values.next().and_then(|text| text.parse().ok());
        let pid = values.next().and_then(|text| text.parse().ok());
        let (Some(address), Some(pid)) = (address, pid) else {
            // Without a process some drivers write a sentence.
            if line.starts_with("No ") {
                continue;
            }
            return Err(format!("a process of nvidia-smi is not understood: {}", cut(line)));
        };
        let mebibytes = values.next().and_then(value).and_then(|text| text.parse::<u64>().ok());
        found.push((address, pid, mebibytes.and_then(|count| count.checked_mul(1 << 20))));
    }
    Ok(found)
}

fn cut(text: &str) -> String {
    text.trim().chars().take(200).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::{compute_apps, links_up, parse, refused_field, tagged, value, xml_by_gpu};
    use telltale_schema::chip::PciAddress;

    fn address(text: &str) -> PciAddress {
        text.parse().unwrap()
    }

    #[test]
    fn lines_are_gpus_and_what_has_no_value_has_none() {
        let fields = ["pci.bus_id", "name", "fan.speed", "ecc.errors.corrected.volatile.total"];
        let text =
            "00000000:41:00.0, NVIDIA H200, [N/A], 0\n00000000:C1:00.0, X, 30, [Not Supported]\n\n";
        let gpus = parse(&fields, text).unwrap();
        let of = |gpu: &str, field| value(&gpus[&address(gpu)].fields[field]);
        assert_eq!(of("0000:41:00.0", "name"), Some("NVIDIA H200"));
        assert_eq!(of("0000:41:00.0", "fan.speed"), None);
        assert_eq!(of("0000:41:00.0", "ecc.errors.corrected.volatile.total"), Some("0"));
        assert_eq!(of("0000:c1:00.0", "fan.speed"), Some("30"));
        assert_eq!(of("0000:c1:00.0", "ecc.errors.corrected.volatile.total"), None);
        for none in ["[Unknown Error]", "N/A", "", "[GPU requires reset]"] {
            assert_eq!(value(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_no_list_of_gpus_is_refused_with_its_words() {
        let error = |text| parse(&["pci.bus_id", "name"], text).unwrap_err();
        assert!(error("No devices were found\n").contains("1 values for 2 fields: No devices"));
        assert!(error("").contains("shows no GPU"));
        assert!(error("1, a\n").contains("not a PCI address"));
        assert!(error("00000000:41:00.0, a, b\n").contains("3 values for 2"));
        let refused = "Field \"clocks_event_reasons.active\" is not a valid field to query.\n";
        assert_eq!(refused_field(refused), Some("clocks_event_reasons.active"));
        assert_eq!(refused_field("0, 1\n"), None);
    }

    #[test]
    fn xml_links_and_processes_belong_to_their_gpu() {
        let xml = "<log>\n<gpu id=\"00000000:41:00.0\">\n<replay_counter>5</replay_counter>\n</gpu>\n\
                   <gpu id=\"00000000:C1:00.0\">\n<a>89 C</a></gpu></log>";
        let parts = xml_by_gpu(xml);
        assert_eq!(parts.len(), 2);
        assert_eq!(tagged(parts[0].1, "replay_counter"), Some("5"));
        assert_eq!(
            (parts[1].0, tagged(parts[1].1, "replay_counter")),
            (address("0000:c1:00.0"), None)
        );
        let links = "GPU 0: NVIDIA A100 (UUID: GPU-a)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n\
                     GPU 1: NVIDIA A100 (UUID: GPU-b)\n\
                     GPU 2: NVIDIA A100 (UUID: GPU-d)\n\
                     NVML: Unable to retrieve NVLink information as all links are inActive\n";
        assert_eq!(links_up(links, "GPU-d"), Some(0));
        assert_eq!([links_up(links, "GPU-a"), links_up(links, "GPU-b")], [Some(1), None]);
        assert_eq!([links_up(links, "GPU-c"), links_up(links, "")], [None, None]);
        let apps =
            compute_apps("00000000:41:00.0, 70, 100\n00000000:41:00.0, 71, [N/A]\n").unwrap();
        let expected = [(70, Some(100 << 20)), (71, None)];
        assert_eq!(apps, expected.map(|(pid, bytes)| (address("0000:41:00.0"), pid, bytes)));
        assert_eq!(compute_apps("No running processes found\n"), Ok(Vec::new()));
        assert!(compute_apps("x, y, z\n").unwrap_err().contains("x, y, z"));
    }
}
