//! Every option of torchrun, and what `telltale train` makes of it.
//!
//! This is the one list. Options that are understood are fields of [`super::train::TrainArguments`]; the others are
//! arguments too, made from this list, so that each is answered by its name. A test compares the list with the parsers
//! of PyTorch 1.13 and of the PyTorch that is installed.

use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// One of torchrun's options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TorchrunOption {
    /// Its name without dashes in front.
    pub(crate) name: &'static str,
    /// The same as torchrun had it before.
    pub(crate) underscored: &'static str,
    /// The variable that stands for it, if one does.
    pub(crate) variable: Option<&'static str>,
    pub(crate) takes: Takes,
    pub(crate) answer: Answer,
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Value,
    Nothing,
}

/// What is made of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It does what it does under torchrun.
    Understood,
    /// It is taken and changes nothing, for this reason.
    NotNeeded(&'static str),
    /// It is refused; this is what to write instead.
    Refused(&'static str),
}

const fn option(
    name: &'static str,
    underscored: &'static str,
    variable: Option<&'static str>,
    takes: Takes,
    answer: Answer,
) -> TorchrunOption {
    TorchrunOption { name, underscored, variable, takes, answer }
}

use Answer::{NotNeeded, Refused, Understood};
use Takes::{Nothing, Value};

/// torchrun's options, in the order of its help (`torch/distributed/run.py`, PyTorch 1.13 to 2.10).
pub(crate) const OPTIONS: [TorchrunOption; 31] = [
    option("nnodes", "nnodes", Some("PET_NNODES"), Value, Understood),
    option("nproc-per-node", "nproc_per_node", Some("PET_NPROC_PER_NODE"), Value, Understood),
    option("rdzv-backend", "rdzv_backend", Some("PET_RDZV_BACKEND"), Value, Understood),
    option("rdzv-endpoint", "rdzv_endpoint", Some("PET_RDZV_ENDPOINT"), Value, Understood),
    option("rdzv-id", "rdzv_id", Some("PET_RDZV_ID"), Value, Understood),
    option("rdzv-conf", "rdzv_conf", Some("PET_RDZV_CONF"), Value, Understood),
    option("standalone", "standalone", Some("PET_STANDALONE"), Nothing, Understood),
    option("max-restarts", "max_restarts", Some("PET_MAX_RESTARTS"), Value, Understood),
    option(
        "monitor-interval",
        "monitor_interval",
        Some("PET_MONITOR_INTERVAL"),
        Value,
        NotNeeded("the end of a worker is noticed at once"),
    ),
    option(
        "start-method",
        "start_method",
        Some("PET_START_METHOD"),
        Value,
        NotNeeded("each worker is a program, never a forked function"),
    ),
    option(
        "event-log-handler",
        "event_log_handler",
        Some("PET_EVENT_LOG_HANDLER"),
        Value,
        NotNeeded("the report at the end and `telltale cluster incidents` have the events"),
    ),
    option("role", "role", Some("PET_ROLE"), Value, Understood),
    option("module", "module", Some("PET_MODULE"), Nothing, Understood),
    option("no-python", "no_python", Some("PET_NO_PYTHON"), Nothing, Understood),
    option("run-path", "run_path", Some("PET_RUN_PATH"), Nothing, Understood),
    option("log-dir", "log_dir", Some("PET_LOG_DIR"), Value, Understood),
    option("redirects", "redirects", Some("PET_REDIRECTS"), Value, Understood),
    option("tee", "tee", Some("PET_TEE"), Value, Understood),
    option(
        "local-ranks-filter",
        "local_ranks_filter",
        Some("PET_LOCAL_RANKS_FILTER"),
        Value,
        Understood,
    ),
    option(
        "duplicate-stdout-filters",
        "duplicate_stdout_filters",
        Some("PET_DUPLICATE_STDOUT_FILTERS"),
        Value,
        Refused("write `--log-dir DIR`, and search its files: grep -h apple DIR/*/*/*.log"),
    ),
    option(
        "duplicate-stderr-filters",
        "duplicate_stderr_filters",
        Some("PET_DUPLICATE_STDERR_FILTERS"),
        Value,
        Refused("write `--log-dir DIR`, and search its files: grep -h apple DIR/*/*/*.log"),
    ),
    option("node-rank", "node_rank", Some("PET_NODE_RANK"), Value, Understood),
    option("master-addr", "master_addr", Some("PET_MASTER_ADDR"), Value, Understood),
    option("master-port", "master_port", Some("PET_MASTER_PORT"), Value, Understood),
    option("local-addr", "local_addr", Some("PET_LOCAL_ADDR"), Value, Understood),
    option(
        "logs-specs",
        "logs_specs",
        None,
        Value,
        Refused("write `--log-dir DIR`, `--redirects` or `--tee`"),
    ),
    option(
        "numa-binding",
        "numa_binding",
        None,
        Value,
        Refused(
            "write `--no-python -- numactl --localalloc python3 -u SCRIPT`, or bind in the script by \
             its LOCAL_RANK",
        ),
    ),
    option(
        "signals-to-handle",
        "signals_to_handle",
        Some("PET_SIGNALS_TO_HANDLE"),
        Value,
        Refused(
            "leave it out: SIGINT, SIGTERM and SIGHUP reach the workers; send any other signal to \
             the workers themselves",
        ),
    ),
    option("shutdown-timeout", "shutdown_timeout", Some("PET_SHUTDOWN_TIMEOUT"), Value, Understood),
    option(
        "virtual-local-rank",
        "virtual_local_rank",
        Some("PET_VIRTUAL_LOCAL_RANK"),
        Nothing,
        Refused(
            "write `torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))` in the script, which works \
             with and without it",
        ),
    ),
    option(
        "use-env",
        "use_env",
        None,
        Nothing,
        NotNeeded("ranks are always in the environment, as under torchrun"),
    ),
];

/// The options that were given and are not understood.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherOptions {
    pub(crate) given: Vec<GivenOption>,
}

/// An option that was given.
#[derive(Debug, Clone)]
pub(crate) struct GivenOption {
    pub(crate) option: &'static TorchrunOption,
    /// Whether a variable of the environment gave it.
    pub(crate) by_variable: bool,
}

// === impl TorchrunOption ===

impl TorchrunOption {
    fn argument(&self) -> Arg {
        let argument = Arg::new(self.name).long(self.name).alias(self.underscored).hide(true);
        let argument = match self.variable {
            Some(variable) => argument.env(variable).hide_env(true),
            None => argument,
        };
        match self.takes {
            Value => argument.action(ArgAction::Set),
            Nothing => argument.action(ArgAction::SetTrue).value_parser(BoolishValueParser::new()),
        }
    }
}

// === impl OtherOptions ===

/// Those that are not understood.
fn others() -> impl Iterator<Item = &'static TorchrunOption> {
    OPTIONS.iter().filter(|option| option.answer != Understood)
}

impl Args for OtherOptions {
    fn augment_args(command: Command) -> Command {
        command.args(others().map(TorchrunOption::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OtherOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = others().filter_map(|option| {
            let source = matches.value_source(option.name)?;
            // `PET_X=0` of an option that takes nothing does not give it.
            let is_given = source != ValueSource::DefaultValue
                && (option.takes == Value || matches.get_flag(option.name));
            let by_variable = source == ValueSource::EnvVariable;
            is_given.then_some(GivenOption { option, by_variable })
        });
        Ok(Self { given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

// === impl GivenOption ===

impl GivenOption {
    /// As it was given.
    pub(crate) fn name(&self) -> String {
        match self.option.variable.filter(|_| self.by_variable) {
            Some(variable) => format!("{variable} (--{})", self.option.name),
            None => format!("--{}", self.option.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use telltale_harness::python_with;

    use super::super::definition;
    use super::*;

    /// Prints the options of the PyTorch that is installed, each with its variable.
    const PARSER: &str = "\
from torch.distributed.run import get_args_parser
for one in get_args_parser()._actions:
    names = [name[2:].replace('_', '-') for name in one.option_strings if name.startswith('--')]
    if names and names[0] != 'help':
        has_variable = type(one).__name__ in ('env', 'check_env')
        print(names[0], 'PET_' + one.dest.upper() if has_variable else '-', one.nargs)
";

    #[test]
    fn names_and_variables_belong_together() {
        for one in OPTIONS {
            assert_eq!(one.underscored, one.name.replace('-', "_"));
            if let Some(variable) = one.variable {
                assert_eq!(variable, format!("PET_{}", one.underscored.to_uppercase()));
            }
        }
    }

    #[test]
    fn every_option_is_an_argument_in_both_spellings_and_by_its_variable() {
        let definition = definition();
        let train = definition.find_subcommand("train").expect("it is a command");
        for one in OPTIONS {
            let argument =
                train.get_arguments().find(|argument| argument.get_long() == Some(one.name));
            let argument = argument.unwrap_or_else(|| panic!("--{} is no argument", one.name));
            let aliases = argument.get_all_aliases().unwrap_or_default();
            let is_spelt = one.underscored == one.name || aliases.contains(&one.underscored);
            assert!(is_spelt, "--{}: {aliases:?}", one.underscored);
            let variable = argument.get_env().and_then(|variable| variable.to_str());
            assert_eq!(variable, one.variable, "--{}", one.name);
            let takes = if argument.get_action().takes_values() { Value } else { Nothing };
            assert_eq!(takes, one.takes, "--{}", one.name);
        }
    }

    #[test]
    fn every_option_of_the_pytorch_that_is_installed_is_in_the_list() {
        let test = "arguments::torchrun::every_option_of_the_pytorch";
        let Some(mut python) = python_with(test, "torch.distributed.run") else { return };
        let printed = python.args(["-c", PARSER]).output().expect("Python runs");
        let printed = String::from_utf8(printed.stdout).expect("names are text");
        let mut seen = BTreeSet::new();
        for line in printed.lines() {
            let [name, variable, nargs] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let known = OPTIONS.iter().find(|one| one.name == name);
            let known = known.unwrap_or_else(|| panic!("--{name} is not in the list"));
            assert_eq!(known.variable.unwrap_or("-"), variable, "--{name}");
            assert_eq!(known.takes == Nothing, nargs == "0", "--{name}");
            seen.insert(name.to_owned());
        }
        assert!(seen.len() >= 18, "{printed}");
    }
}
