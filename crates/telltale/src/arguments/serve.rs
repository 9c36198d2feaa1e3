//! The arguments of `telltale serve`, and of `telltale config`, which shows what they come to.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use telltale_node::configuration::{Argument, INTERVAL_SECONDS, Layers};
use telltale_server::listen::{Address, AddressError};
use telltale_server::log::{Format, Level};

/// What it does.
pub(super) const SERVE_ABOUT: &str =
    "Run the node service: collect, and serve gRPC, HTTP and metrics";

/// What follows the options.
pub(super) const SERVE_HELP: &str = "\
Collects until SIGTERM or Ctrl-C, and answers whoever may ask. What is not said by an argument comes
from the variable TELLTALE_… of the key, from the configuration file, or is as it is by default;
telltale config show tells all keys. SIGHUP has the file read again.

Exit status: 0 it was asked to end, 2 it could not begin or go on, 64 wrong usage.

Examples:
  telltale serve                      for this machine
  telltale serve --root /tmp/n300     for one that telltale emulate runs
  telltale serve --http unix:http.sock --http 127.0.0.1:9435 --token-file token";

pub(super) const CONFIG_HELP: &str = "\
check tells what the service would refuse when it begins: keys that nobody knows or that have no
such value, keys that contradict each other, and files and directories that this user cannot use;
run it as the service's user. It makes nothing, and what a running service holds is no fault.

Exit status: 0 the configuration makes sense, 2 it does not, 64 wrong usage.";

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Read this file alone [default: /etc/telltale/telltale.toml, and over it
    /// $XDG_CONFIG_HOME/telltale/telltale.toml or ~/.config/telltale/telltale.toml, where they are]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look at the machine below DIR (as `telltale emulate` makes it) instead of this one
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Where endpoints and ledgers are, and the service's own socket [default: as for telltale smi;
    /// the socket is where a runtime of this user would have its own]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Where history and other state are kept [default: $STATE_DIRECTORY; for root
    /// /var/lib/telltale; else $XDG_STATE_HOME/telltale or ~/.local/state/telltale]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Collect each SECONDS, from 0.1 to 3600 [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,
    /// Serve gRPC at ADDR: unix:PATH, ADDRESS:PORT, or off; can be given again; other
    /// machines need TLS, for which there are keys in the configuration
    /// [default: unix:telemetry.sock, in the runtime directory]
    #[arg(long, value_name = "ADDR")]
    grpc: Vec<ListenAddress>,
    /// Serve HTTP at ADDR: ADDRESS:PORT, unix:PATH, or off; can be given again
    /// [default: 127.0.0.1:9435]
    #[arg(long, value_name = "ADDR")]
    http: Vec<ListenAddress>,
    /// Whoever sends the word in FILE as a bearer token sees everything; FILE must be private
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Do not load NVIDIA's library, which opens its devices and keeps them awake
    #[arg(long)]
    no_nvml: bool,
    /// Show the machine's own processors and memory as a device also where there are accelerators
    #[arg(long)]
    with_host: bool,
    /// What is logged: error, warn, info or debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
    /// What its lines look like: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
    /// Show programs that report to the old allocation server, which they find at PATH
    /// (unchanged ones look at /tmp/tt_allocation_server.sock)
    #[arg(long, value_name = "PATH")]
    legacy_allocation_socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with FILE, or with the configuration that the service would have
    Check {
        /// The file [default: those that the service reads, and its variables]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Look at no file or directory that the configuration names: they are another machine's
        #[arg(long)]
        syntax_only: bool,
    },
    /// Show each key with its value and where that comes from
    Show {
        #[command(flatten)]
        serve: ServeArguments,
        /// Print JSON: an array of objects with key, variable, kind, value and origin
        #[arg(long)]
        json: bool,
    },
}

/// What can be said for `--grpc` and `--http`.
#[derive(Debug, Clone)]
enum ListenAddress {
    /// Nowhere.
    Off,
    /// There.
    At(Address),
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

/// The list of a configuration; none where nothing was said.
fn listen(addresses: &[ListenAddress]) -> Option<toml::Value> {
    let text = |address: &ListenAddress| match address {
        ListenAddress::Off => None,
        ListenAddress::At(address) => Some(toml::Value::from(address.to_string())),
    };
    let list: Vec<toml::Value> = addresses.iter().filter_map(text).collect();
    (!addresses.is_empty()).then(|| list.into())
}

// === impl ServeArguments ===

impl ServeArguments {
    /// Where the configuration is read from.
    pub(crate) fn layers(&self) -> Layers {
        Layers::of_this_process(self.config.clone(), self.values())
    }

    /// The keys that the arguments set. A further argument is a line here.
    fn values(&self) -> Vec<Argument> {
        let path = |path: &Path| toml::Value::from(path.to_string_lossy().into_owned());
        let legacy = self.legacy_allocation_socket.as_deref().map(path);
        let all = [
            ("--root", "root", self.root.as_deref().map(path)),
            ("--runtime-dir", "runtime_dir", self.runtime_dir.as_deref().map(path)),
            ("--state-dir", "state_dir", self.state_dir.as_deref().map(path)),
            ("--interval", "interval_seconds", self.interval.map(|span| span.as_secs_f64().into())),
            ("--grpc", "grpc.listen", listen(&self.grpc)),
            ("--http", "http.listen", listen(&self.http)),
            ("--token-file", "token_file", self.token_file.as_deref().map(path)),
            ("--legacy-allocation-socket", "legacy.socket", legacy),
            ("--no-nvml", "hardware.nvml", self.no_nvml.then(|| false.into())),
            ("--with-host", "hardware.host", self.with_host.then(|| "always".into())),
            ("--log-level", "log_level", self.log_level.map(|level| level.name().into())),
            ("--log-format", "log_format", self.log_format.map(|format| format.name().into())),
        ];
        let given = all.into_iter().filter_map(|(name, key, value)| Some((name, key, value?)));
        given.map(|(name, key, value)| Argument { name, key, value }).collect()
    }
}

/// The time between two collections, within what the configuration allows.
fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) if INTERVAL_SECONDS.contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => {
            let (least, most) = (INTERVAL_SECONDS.start(), INTERVAL_SECONDS.end());
            Err(format!("not a number of seconds from {least} to {most}"))
        }
    }
}
