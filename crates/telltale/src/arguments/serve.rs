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
    "Run the node service: collect periodically and serve HTTP, gRPC and OTLP";

/// What follows the options.
pub(super) const SERVE_HELP: &str = "\
Runs until SIGTERM or Ctrl-C. Arguments override variables (TELLTALE_…), variables override the
configuration file; `telltale config show` lists all keys. SIGHUP reloads the file.

Exit status: 0 ended by a signal, 2 failure, 64 usage error.

Examples:
  telltale serve                      this host
  telltale serve --root /tmp/n300     a machine that telltale emulate runs
  telltale serve --http unix:http.sock --http 127.0.0.1:9435 --token-file token";

pub(super) const CONFIG_HELP: &str = "\
check reports unknown keys, invalid values, contradicting keys, and files that this user cannot use.
Run it as the service's user. It changes nothing.

Exit status: 0 valid, 2 invalid, 64 usage error.";

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Configuration file [default: /etc/telltale/telltale.toml, overridden by
    /// $XDG_CONFIG_HOME/telltale/telltale.toml or ~/.config/telltale/telltale.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read the machine below DIR (see `telltale emulate`) instead of this host
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Directory of endpoints, ledgers and the service's socket [default: as for telltale smi]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Directory of the history [default: $STATE_DIRECTORY; for root
    /// /var/lib/telltale; else $XDG_STATE_HOME/telltale or ~/.local/state/telltale]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Time between collections, in seconds, 0.1 to 3600 [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    interval: Option<Duration>,
    /// Listen for gRPC: unix:PATH, ADDRESS:PORT, or off; repeatable. Ports for other hosts need TLS
    /// [default: unix:telemetry.sock in the runtime directory]
    #[arg(long, value_name = "ADDR")]
    grpc: Vec<ListenAddress>,
    /// Listen for HTTP: ADDRESS:PORT, unix:PATH, or off; repeatable [default: 127.0.0.1:9435]
    #[arg(long, value_name = "ADDR")]
    http: Vec<ListenAddress>,
    /// File with the token of clients that may see all processes; must be private
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Do not load NVML, which opens the GPUs and keeps them awake
    #[arg(long)]
    no_nvml: bool,
    /// Show the host's processors and memory as a device, also beside accelerators
    #[arg(long)]
    with_host: bool,
    /// Log level: error, warn, info or debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,
    /// Log format: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
    /// Accept clients of the old allocation server at PATH (usually
    /// /tmp/tt_allocation_server.sock)
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
    /// Check FILE, or the configuration that the service would use
    Check {
        /// Configuration file [default: those that the service reads, and its variables]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Do not check the files that it names: it is for another host
        #[arg(long)]
        syntax_only: bool,
    },
    /// Show each key, its value and its origin
    Show {
        #[command(flatten)]
        serve: ServeArguments,
        /// Print JSON: objects with key, variable, kind, value, origin
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
