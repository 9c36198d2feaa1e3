//! A machine with two GPUs that are files: libraries that stand in for NVML, CUDA's driver and NCCL, and `nvidia-smi`.
//!
//! It is seen by processes in a mount namespace of their own, where the driver is loaded and the PCI bus has both.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use telltale_harness::{Scratch, cargo_bin, cargo_library_directory, compile_c, python};
use xtask::repository::root;

/// What both say of one GPU: a file of the library's, its text, and `nvidia-smi`'s fields. A file that the library does
/// not know is what the kernel says (see [`LINKS`]).
type Said = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// An A100 with ECC and NVLink. Its address is that of the CUDA stand-in's first device.
const A100: [Said; 36] = [
    ("handle", "1", &[("index", "0"), ("count", "2")]),
    ("pci", "00000000:17:00.0", &[("pci.bus_id", "00000000:17:00.0")]),
    ("name", "NVIDIA A100-SXM4-80GB", &[("name", "NVIDIA A100-SXM4-80GB")]),
    (
        "uuid",
        "GPU-6f4d1a0e-0000-4000-8000-000000000000",
        &[("uuid", "GPU-6f4d1a0e-0000-4000-8000-000000000000")],
    ),
    ("serial", "1650123456789", &[("serial", "1650123456789")]),
    ("vbios", "92.00.45.00.03", &[("vbios_version", "92.00.45.00.03")]),
    ("memory", "1073741824 85899345920", &[]),
    ("utilization", "37 5", &[("utilization.gpu", "37"), ("utilization.memory", "5")]),
    ("temperature", "41", &[("temperature.gpu", "41")]),
    (
        "slowdown",
        "89",
        &[(
            "xml",
            "<gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold>\n<replay_counter>5</replay_counter>",
        )],
    ),
    ("power", "119500", &[("power.draw", "119.50")]),
    ("power_limit", "350000", &[("enforced.power.limit", "350.00")]),
    ("power_default", "400000", &[("power.default_limit", "400.00")]),
    (
        "power_range",
        "100000 400000",
        &[("power.min_limit", "100.00"), ("power.max_limit", "400.00")],
    ),
    ("sm_clock", "1410", &[("clocks.current.sm", "1410")]),
    ("memory_clock", "1593", &[("clocks.current.memory", "1593")]),
    ("fan_percent", "!NOT_SUPPORTED", &[("fan.speed", "[N/A]")]),
    ("throttled_by", "36", &[("clocks_throttle_reasons.active", "0x0000000000000024")]),
    ("corrected", "12", &[("ecc.errors.corrected.volatile.total", "12")]),
    ("uncorrected", "0", &[("ecc.errors.uncorrected.volatile.total", "0")]),
    ("corrected_lifetime", "31", &[("ecc.errors.corrected.aggregate.total", "31")]),
    ("uncorrected_lifetime", "2", &[("ecc.errors.uncorrected.aggregate.total", "2")]),
    ("sram_uncorrected", "1", &[("ecc.errors.uncorrected.volatile.sram", "1")]),
    ("sram_uncorrected_lifetime", "4", &[]),
    ("encoder", "!NOT_SUPPORTED", &[("utilization.encoder", "[Not Supported]")]),
    ("decoder", "7", &[("utilization.decoder", "7")]),
    ("pstate", "2", &[("pstate", "P2")]),
    (
        "remapped_rows",
        "3 1 1 0",
        &[
            ("remapped_rows.correctable", "3"),
            ("remapped_rows.uncorrectable", "1"),
            ("remapped_rows.pending", "Yes"),
            ("remapped_rows.failure", "No"),
        ],
    ),
    ("pcie_replays", "5", &[]),
    ("nvlink_links", "3 1", &[]),
    ("nvlink_up", "2", &[]),
    ("compute", "", &[]),
    ("graphics", "!NOT_SUPPORTED", &[]),
    ("mps", "!NOT_SUPPORTED", &[]),
    ("link", "", &[("pcie.link.gen.current", "4"), ("pcie.link.gen.max", "4")]),
    ("lanes", "", &[("pcie.link.width.current", "16"), ("pcie.link.width.max", "16")]),
];

/// A consumer card: no ECC, no NVLink, no serial number. What is not here, neither of them has.
const RTX: [Said; 19] = [
    ("handle", "1", &[("index", "1"), ("count", "2")]),
    ("pci", "00000000:B1:00.0", &[("pci.bus_id", "00000000:B1:00.0")]),
    ("name", "NVIDIA GeForce RTX 4090", &[("name", "NVIDIA GeForce RTX 4090")]),
    (
        "uuid",
        "GPU-6f4d1a0e-0000-4000-8000-000000000001",
        &[("uuid", "GPU-6f4d1a0e-0000-4000-8000-000000000001")],
    ),
    ("vbios", "95.02.18.80.51", &[("vbios_version", "95.02.18.80.51")]),
    (
        "memory",
        "524288000 25757220864",
        &[(
            "xml",
            "<gpu_temp_slow_threshold>N/A</gpu_temp_slow_threshold>\n<gpu_temp_max_gpu_threshold>84 C</gpu_temp_max_gpu_threshold>\n<replay_counter>N/A</replay_counter>",
        )],
    ),
    ("utilization", "0 0", &[("utilization.gpu", "0"), ("utilization.memory", "0")]),
    ("temperature", "33", &[("temperature.gpu", "33")]),
    ("gpu_max", "84", &[]),
    ("power", "21370", &[("power.draw", "21.37")]),
    ("power_limit", "450000", &[("enforced.power.limit", "450.00")]),
    (
        "power_range",
        "150000 600000",
        &[("power.min_limit", "150.00"), ("power.max_limit", "600.00")],
    ),
    ("sm_clock", "210", &[("clocks.current.sm", "210")]),
    ("memory_clock", "405", &[("clocks.current.memory", "405")]),
    ("fan", "1400", &[]),
    ("fan_percent", "30", &[("fan.speed", "30")]),
    ("throttled_by", "1", &[("clocks_throttle_reasons.active", "0x0000000000000001")]),
    ("pstate", "8", &[("pstate", "P8")]),
    (
        "link",
        "",
        &[
            ("pcie.link.gen.current", "1"),
            ("pcie.link.gen.max", "4"),
            ("pcie.link.width.current", "8"),
            ("pcie.link.width.max", "16"),
        ],
    ),
];

/// Speed and width of the links, now and at most.
const LINKS: [(&str, [&str; 4]); 2] = [
    ("0000:17:00.0", ["16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16"]),
    ("0000:b1:00.0", ["2.5 GT/s PCIe", "8", "16.0 GT/s PCIe", "16"]),
];

/// Runs `$1…` where the driver is loaded, and where a process on the first GPU is this one.
const ENTER: &str = r#"mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && mount --bind "$STAND_IN/bus" /sys/bus \
    && echo "$$ 524288000" >"$STAND_IN/nvml/gpu0/compute" && exec "$@""#;

/// The machine.
pub(crate) struct StandIn {
    place: Scratch,
    /// A folder as `--into` fills it.
    pub(crate) programs: Scratch,
}

impl StandIn {
    pub(crate) fn new() -> Self {
        let place = Scratch::new();
        for folder in ["nvml", "smi", "bin", "cuda", "python/torch", "bus/pci/devices"] {
            fs::create_dir_all(place.join(folder)).unwrap();
        }
        let machine = Self { place, programs: Scratch::new() };
        machine.compile();
        machine.write("nvml/count", "2\n");
        machine.write("nvml/driver_version", "580.95.05\n");
        machine.write(
            "smi/unknown",
            "clocks_event_reasons.active\necc.errors.uncorrected.aggregate.sram\n",
        );
        machine.write("smi/nvlink", "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-6f4d1a0e-0000-4000-8000-000000000000)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n\t Link 2: <inactive>\n");
        machine.gpu(0, &A100);
        machine.gpu(1, &RTX);
        machine.write("nvml/gpu1/compute", "");
        for (address, texts) in LINKS {
            let port = format!("port-of-{address}");
            machine.write(&format!("bus/{port}/vendor"), "0x8086\n");
            let files =
                ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];
            for (file, text) in files.into_iter().zip(texts) {
                machine.write(&format!("bus/{port}/{address}/{file}"), &format!("{text}\n"));
            }
            let target = format!("../../{port}/{address}");
            symlink(target, machine.place.join("bus/pci/devices").join(address)).unwrap();
        }
        machine
    }

    /// The libraries and programs.
    fn compile(&self) {
        let library: &[&str] = &["-shared", "-fPIC", "-ldl"];
        let crates = root().join("crates");
        compile_c(
            &crates.join("collector/tests/hardware/nvml.c"),
            &self.place.join("nvml/libnvidia-ml.so.1"),
            library,
        );
        let driver = root().join("tools/preload/tests/libcuda.c");
        let flags = [library, &["-Wl,-Bsymbolic", "-Wl,-soname,libcuda.so.1"]].concat();
        compile_c(&driver, &self.place.join("cuda/libcuda.so.1"), &flags);
        let nccl = crates.join("nccl-profiler/tests/c/harness.c");
        compile_c(&nccl, &self.place.join("nccl"), &["-pthread", "-ldl", "-O1"]);
        self.write("bin/nvidia-smi", include_str!("nvidia-smi.sh"));
        let program = self.place.join("bin/nvidia-smi");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        self.write("python/torch/__init__.py", include_str!("torch/__init__.py"));
        self.write("python/torch/distributed.py", include_str!("torch/distributed.py"));
        let library = |package, name: &str| {
            cargo_library_directory(package, name).join(format!("lib{name}.so"))
        };
        let built: [(PathBuf, &str); 3] = [
            (cargo_bin("telltale"), "telltale"),
            (library("telltale-preload", "telltale_preload"), "libtelltale_preload.so"),
            (
                library("telltale-nccl-profiler", "nccl_profiler_telltale"),
                "libnccl-profiler-telltale.so",
            ),
        ];
        for (from, name) in built {
            symlink(from, self.programs.join(name)).unwrap();
        }
        fs::write(self.programs.join("commit"), "0123abc\n").unwrap();
    }

    fn gpu(&self, index: usize, said: &[Said]) {
        for (file, text, fields) in said {
            self.write(&format!("nvml/gpu{index}/{file}"), &format!("{text}\n"));
            for (field, text) in *fields {
                self.write(&format!("smi/gpu{index}/{field}"), &format!("{text}\n"));
            }
        }
        self.write(&format!("smi/gpu{index}/driver_version"), "580.95.05\n");
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes `nvidia-smi` say something else of every field of the first GPU but those by which it is found. Gives their
    /// names.
    pub(crate) fn alter(&self) -> Vec<&'static str> {
        let fields = A100.iter().flat_map(|(.., fields)| *fields).map(|(field, _)| *field);
        let altered =
            fields.filter(|field| !["index", "pci.bus_id", "uuid", "xml"].contains(field));
        altered.inspect(|field| self.write(&format!("smi/gpu0/{field}"), "9999\n")).collect()
    }

    /// Compares there, with these variables.
    pub(crate) fn compare(&self, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", ENTER, "sh", env!("CARGO_BIN_EXE_xtask")]);
        command.args(["gpu", "--programs"]).arg(self.programs.path());
        command.env("STAND_IN", self.place.path());
        let search =
            |first: &Path| format!("{}:{}", first.display(), std::env::var("PATH").unwrap());
        command.env("PATH", search(&self.place.join("bin")));
        command.env("PYTHONPATH", self.place.join("python"));
        command.env("TELLTALE_PYTHON", python().get_program());
        let libraries = ["nvml", "cuda"].map(|name| self.place.join(name).display().to_string());
        command.env("LD_LIBRARY_PATH", libraries.join(":"));
        for variable in ["TELLTALE_ROOT", "TELLTALE_DISABLED", "TT_METRICS_SOCKET_DIR"] {
            command.env_remove(variable);
        }
        command.envs(variables.iter().copied()).output().unwrap()
    }
}
