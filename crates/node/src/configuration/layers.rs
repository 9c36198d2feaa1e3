//! Layers of configuration, one over the other: what holds by itself, files, variables, arguments.
//!
//! Nothing is opened but the files, and nothing is written. Each layer is checked by itself, so that
//! what is wrong is reported at its place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::Configuration;
use super::check::check;
use super::dotted::{lookup, set};
use super::keys::{ConfigurationKey, ValueKind};
use super::text::{FileProblem, LocatedValue, read};
use telltale_query::nearest;
use telltale_server::bounded_file;

/// The largest configuration file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The file of an installation.
const INSTALLED_FILE: &str = "/etc/telltale/telltale.toml";

/// The file below a user's directory of configurations.
const USER_FILE: &str = "telltale/telltale.toml";

/// What variables of ours begin with.
const PREFIX: &str = "TELLTALE_";

/// Our variables that are no keys: those of runtimes, of the program cache and of other commands.
const OTHER_VARIABLES: [&str; 7] = [
    "TELLTALE_CONFIG",
    "TELLTALE_DISABLED",
    "TELLTALE_END_WITH_PARENT",
    "TELLTALE_KERNEL_CACHE",
    "TELLTALE_METRICS_SOCKET",
    "TELLTALE_PROGRAM_CACHE",
    "TELLTALE_TOKEN",
];

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It holds by itself.
    Default,
    /// A line of a file.
    File(PathBuf, usize),
    /// A variable.
    Variable(String),
    /// An argument.
    Argument(&'static str),
}

/// An argument that is a key's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The argument's name, with its dashes.
    pub name: &'static str,
    /// The key.
    pub key: &'static str,
    /// The value.
    pub value: toml::Value,
}

/// Where a configuration is read from.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Files that must be there, or none to read those that are.
    pub file: Option<PathBuf>,
    /// The variables of the process.
    pub variables: Vec<(OsString, OsString)>,
    /// The arguments of the command.
    pub arguments: Vec<Argument>,
}

/// A configuration and where each of its values comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// The configuration.
    pub configuration: Configuration,
    /// Each key with its value, if it has one, and where that comes from.
    pub values: Vec<(String, Option<toml::Value>, Origin)>,
    /// What is no error and yet may be a mistake.
    pub remarks: Vec<String>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// A file cannot be read.
    #[error("cannot read {path}; make it readable, or name another file")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file has something wrong in it.
    #[error("{}", problems_of(path, problems))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problems: Vec<FileProblem>,
    },
    /// A variable has a value that makes no sense.
    #[error("the variable {name} is wrong: {message}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// Each layer makes sense, and all of them together do not.
    #[error("files, variables and arguments do not go together: {0}; put them into one file")]
    Together(String),
    /// An argument has a value that makes no sense.
    #[error("{name} is wrong: {message}")]
    Argument {
        /// The argument.
        name: &'static str,
        /// What is wrong.
        message: String,
    },
}

// === impl Layers ===

impl Layers {
    /// The layers of this process.
    pub fn of_this_process(file: Option<PathBuf>, arguments: Vec<Argument>) -> Self {
        Self { file, variables: std::env::vars_os().collect(), arguments }
    }

    /// One file over what holds by itself, whatever this process's variables say.
    pub fn of_file(path: &Path) -> Self {
        Self { file: Some(path.to_owned()), ..Self::default() }
    }

    /// The files that are read, the last one on top.
    pub fn files(&self) -> Vec<PathBuf> {
        let named = self.file.clone().or_else(|| self.variable("TELLTALE_CONFIG").map(Into::into));
        if let Some(path) = named {
            return vec![path];
        }
        let own = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let own = own.filter(|path| path.is_absolute());
        let own = own.or_else(|| Some(PathBuf::from(self.variable("HOME")?).join(".config")));
        let own = own.map(|directory| directory.join(USER_FILE));
        let all = [PathBuf::from(INSTALLED_FILE)].into_iter().chain(own);
        all.filter(|path| path.exists()).collect()
    }

    /// The configuration.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn load(&self) -> Result<Effective, ConfigurationError> {
        let keys = Configuration::keys();
        let mut merged = Merged::default();
        for path in self.files() {
            for LocatedValue { path: key, value, line } in read_file(&path, &keys)? {
                merged.put(&key, value, Origin::File(path.clone(), line));
            }
        }
        let remarks = self.add_variables(&keys, &mut merged)?;
        for Argument { name, key, value } in &self.arguments {
            check(key, value).map_err(|message| ConfigurationError::Argument { name, message })?;
            merged.put(key, value.clone(), Origin::Argument(name));
        }
        merged.finish(&keys, remarks)
    }

    fn add_variables(
        &self,
        keys: &[ConfigurationKey],
        merged: &mut Merged,
    ) -> Result<Vec<String>, ConfigurationError> {
        let names: BTreeMap<String, &ConfigurationKey> =
            keys.iter().map(|key| (variable_of(&key.path), key)).collect();
        let mut remarks = Vec::new();
        for (name, value) in &self.variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            let Some(key) = names.get(name) else {
                let known = names.keys().map(String::as_str);
                if !OTHER_VARIABLES.contains(&name)
                    && let Some(near) = nearest(name, known)
                {
                    remarks.push(format!("nothing reads the variable {name}: is it {near}?"));
                }
                continue;
            };
            let wrong = |message| ConfigurationError::Variable { name: name.to_owned(), message };
            let text = value.to_str().ok_or_else(|| wrong(String::from("it is no text")))?;
            let value = parsed(text, key.kind).map_err(wrong)?;
            check(&key.path, &value).map_err(wrong)?;
            merged.put(&key.path, value, Origin::Variable(name.to_owned()));
        }
        Ok(remarks)
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        let found = self.variables.iter().find(|(known, _)| known.to_str() == Some(name));
        found.map(|(_, value)| value).filter(|value| !value.is_empty())
    }
}

/// The variable of a key.
pub fn variable_of(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "_").to_ascii_uppercase())
}

fn read_file(
    path: &Path,
    keys: &[ConfigurationKey],
) -> Result<Vec<LocatedValue>, ConfigurationError> {
    let unreadable = |source| ConfigurationError::Unreadable { path: path.to_owned(), source };
    let bytes = bounded_file::read(path, MAX_FILE_BYTES).map_err(unreadable)?;
    let no_text = |error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error));
    let text = String::from_utf8(bytes).map_err(no_text)?;
    read(&text, keys)
        .map_err(|problems| ConfigurationError::File { path: path.to_owned(), problems })
}

fn problems_of(path: &Path, problems: &[FileProblem]) -> String {
    let lines = problems.iter().map(|problem| format!("{}:{problem}", path.display()));
    lines.collect::<Vec<_>>().join("\n")
}

/// A variable's text as a value.
fn parsed(text: &str, kind: ValueKind) -> Result<toml::Value, String> {
    match kind {
        ValueKind::Bool => match text {
            "true" | "1" => Ok(true.into()),
            "false" | "0" => Ok(false.into()),
            _ => Err(format!("{text:?} is neither true nor false")),
        },
        ValueKind::Integer => {
            let number = text.parse::<i64>();
            number.map(Into::into).map_err(|_| format!("{text:?} is no whole number"))
        }
        ValueKind::Float => {
            let number = text.parse::<f64>();
            number.map(Into::into).map_err(|_| format!("{text:?} is no number"))
        }
        ValueKind::Text => Ok(text.into()),
        ValueKind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(items.map(toml::Value::from).collect::<Vec<_>>().into())
        }
        ValueKind::Map => Err(String::from("a table can be in a file only")),
    }
}

/// Values so far.
#[derive(Default)]
struct Merged {
    table: toml::Table,
    origins: BTreeMap<String, Origin>,
}

impl Merged {
    fn put(&mut self, path: &str, value: toml::Value, origin: Origin) {
        set(&mut self.table, path, Some(value));
        self.origins.insert(path.to_owned(), origin);
    }

    fn finish(
        self,
        keys: &[ConfigurationKey],
        remarks: Vec<String>,
    ) -> Result<Effective, ConfigurationError> {
        let together = |error: toml::de::Error| error.message().trim().to_owned();
        let configuration = Configuration::of_table(&self.table)
            .map_err(|error| ConfigurationError::Together(together(error)))?;
        let values = configuration.table();
        let value = |key: &ConfigurationKey| {
            let origin = self.origins.get(&key.path).cloned().unwrap_or(Origin::Default);
            (key.path.clone(), lookup(&values, &key.path).cloned(), origin)
        };
        let values = keys.iter().map(value).collect();
        Ok(Effective { configuration, values, remarks })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Argument(name) => f.write_str(name),
        }
    }
}
