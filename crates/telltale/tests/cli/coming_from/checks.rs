//! What each command of the page must show, by what is written elsewhere.

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    /// These are printed or painted; `PID` is the workload's.
    Shows(&'static [&'static str]),
    /// A metric has this value.
    Value(f64),
}

/// A row's section, what its first cell begins with, and what is looked for.
pub(super) type Check = (&'static str, &'static str, Expected);

use Expected::{Shows, Value};

const SMI: &str = "nvidia-smi";
const TOP: &str = "nvitop and nvtop";
const TT: &str = "tt-smi";
const DCGM: &str = "dcgm-exporter and dcgmi";

/// The GPUs: what is printed of the first one, and of the second.
const FIRST: &str = "0000:41:00.0";
const SECOND: &str = "0000:c1:00.0";

/// Of all commands and metrics. Those of pynvml are compared with pynvml itself.
pub(super) const CHECKS: &[Check] = &[
    (SMI, "nvidia-smi", Shows(&[FIRST, SECOND, "NVIDIA H200", "41 C", "PID", "600.0 MiB"])),
    (SMI, "nvidia-smi -L", Shows(&["Device 0: 0000:41:00.0: NVIDIA H200", "Device 1: "])),
    (SMI, "nvidia-smi -i 0", Shows(&[FIRST, "PID"])),
    (SMI, "nvidia-smi -l 1", Shows(&[FIRST, SECOND, "PID"])),
    (
        SMI,
        "nvidia-smi -q",
        Shows(&["Device 0000:41:00.0", "serial number", "memory errors corrected"]),
    ),
    (SMI, "nvidia-smi -q -x", Shows(&["\"schema_version\":", "\"NVIDIA H200\""])),
    (SMI, "nvidia-smi -q -d MEMORY", Shows(&["0000:41:00.0,1073741824,84825604096,85899345920"])),
    (SMI, "nvidia-smi -q -d UTILIZATION", Shows(&["0000:41:00.0,0.37,0.05,0.03,0.04"])),
    (SMI, "nvidia-smi -q -d TEMPERATURE", Shows(&["0000:41:00.0,41,89"])),
    (SMI, "nvidia-smi -q -d POWER", Shows(&["0000:41:00.0,119.5,700,700"])),
    (SMI, "nvidia-smi -q -d CLOCK", Shows(&["0000:41:00.0,1980000000,3201000000"])),
    (SMI, "nvidia-smi -q -d ECC", Shows(&["0000:41:00.0,12,0,15"])),
    (SMI, "nvidia-smi -q -d PERFORMANCE", Shows(&["throttled by          sw_power_cap"])),
    (SMI, "nvidia-smi --query-gpu=", Shows(&[",NVIDIA H200,0.37,1073741824"])),
    (SMI, "nvidia-smi --query-compute-apps=", Shows(&["pid,name,dram [B]", "PID,sleep,629145600"])),
    (SMI, "nvidia-smi --help-query-gpu", Shows(&["temperature_limit", "nvlink_links"])),
    (SMI, "nvidia-smi dmon", Shows(&["memory_clock", "dram_capacity", FIRST, SECOND])),
    (SMI, "nvidia-smi pmon", Shows(&["PID   30", "sleep"])),
    (SMI, "nvidia-smi topo -m", Shows(&["NUMA AFFINITY", "Legend:", FIRST])),
    (SMI, "nvidia-smi nvlink -s", Shows(&["0000:41:00.0,18,18"])),
    (TOP, "nvitop", Shows(&[FIRST, SECOND, "sleep"])),
    (TOP, "nvitop -1", Shows(&[FIRST, SECOND, "PID"])),
    (TOP, "nvitop --interval", Shows(&[FIRST, "sleep"])),
    (TOP, "nvitop --readonly", Shows(&[FIRST, "sleep"])),
    (TOP, "nvitop --only", Shows(&[FIRST, SECOND])),
    (TOP, "nvitop --user", Shows(&["Filter:", "root", "sleep"])),
    (TOP, "nvitop --pid", Shows(&["Filter:", "0 of 1 process"])),
    (TOP, "nvitop --no-unicode", Shows(&[FIRST, "...."])),
    (TOP, "nvtop", Shows(&[FIRST, "sleep"])),
    (TOP, "nvtop -d", Shows(&[FIRST, "sleep"])),
    (TOP, "nvtop -C", Shows(&[FIRST, "sleep"])),
    (TT, "tt-smi", Shows(&["T1:", "T4:", "DRAM"])),
    (TT, "tt-smi -ls", Shows(&["Device 0: T1:N0: ", "Device 31: T4:N7: "])),
    (TT, "tt-smi -s", Shows(&["\"schema_version\":", "\"T4:N7\""])),
    (TT, "tt-smi -glx_list_tray_to_device", Shows(&["CPU AFFINITY", "Legend:"])),
    (DCGM, "dcgm-exporter", Shows(&["http listens on "])),
    (DCGM, "curl", Shows(&["telltale_device_up{device=\"0000:41:00.0\"} 1"])),
    (DCGM, "dcgmi discovery", Shows(&["Device 0: 0000:41:00.0: NVIDIA H200", "Device 1: "])),
    (DCGM, "dcgmi dmon", Shows(&["busy", "dram_capacity", FIRST, SECOND])),
    (DCGM, "dcgmi health", Shows(&["No alert is pending or fires."])),
    (DCGM, "dcgmi nvlink", Shows(&["0000:41:00.0,18,18"])),
    (DCGM, "dcgmi diag -r 1", Shows(&["works    devices     2 found", "nvidia: 2 by NVML"])),
    (DCGM, "DCGM_FI_DEV_GPU_UTIL", Value(37.0)),
    (DCGM, "DCGM_FI_DEV_MEM_COPY_UTIL", Value(5.0)),
    (DCGM, "DCGM_FI_DEV_ENC_UTIL", Value(3.0)),
    (DCGM, "DCGM_FI_DEV_DEC_UTIL", Value(4.0)),
    (DCGM, "DCGM_FI_DEV_FB_USED", Value(1024.0)),
    (DCGM, "DCGM_FI_DEV_FB_TOTAL", Value(81_920.0)),
    (DCGM, "DCGM_FI_DEV_GPU_TEMP", Value(41.0)),
    (DCGM, "DCGM_FI_DEV_POWER_USAGE", Value(119.5)),
    (DCGM, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Value(3_600_000.0)),
    (DCGM, "DCGM_FI_DEV_SM_CLOCK", Value(1980.0)),
    (DCGM, "DCGM_FI_DEV_MEM_CLOCK", Value(3201.0)),
    (DCGM, "DCGM_FI_DEV_XID_ERRORS", Value(13.0)),
    (DCGM, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Value(2.0)),
    (DCGM, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", Value(1_024_000_000.0)),
    (DCGM, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Value(6.0)),
    (DCGM, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Value(7.0)),
    (DCGM, "DCGM_FI_DEV_ROW_REMAP_FAILURE", Value(0.0)),
    (DCGM, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", Value(12.0)),
    (DCGM, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", Value(0.0)),
];
