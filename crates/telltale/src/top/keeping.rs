//! The settings of the view as a file: read when it opens, written when it ends and they have
//! changed. A file that cannot be read is reported and left alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use telltale_smi::screen::{Column, GraphValue, Pane, Theme, ViewSettings};

/// The version of the file's shape.
const VERSION: u32 = 1;
/// Bytes of the longest file that is read.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// The usual columns before there were those of the host's use. A file of then has them whenever
/// any setting was changed, and they do not say that they were chosen.
const ONCE_USUAL: [Column; 8] = [
    Column::Pid,
    Column::User,
    Column::Device,
    Column::Dram,
    Column::L1,
    Column::Buffers,
    Column::Up,
    Column::Command,
];

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    theme: String,
    /// Only those that were chosen, so that the usual ones may become others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<String>,
    sort: String,
    descending: bool,
    tree: bool,
    details: bool,
    /// A file of before there were panes has none.
    #[serde(default)]
    pane: Option<String>,
    #[serde(default)]
    enlarged: bool,
    /// A file of before idle devices had a row together has none.
    #[serde(default)]
    all_devices: bool,
    /// Called `figure` up to 0.1.0.
    #[serde(alias = "figure")]
    metric: String,
}

/// Why a file has no settings for us.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error("the settings in {path} cannot be read, and are left alone", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the settings in {path} are broken, and are left alone; mend or remove the file", path = .path.display())]
    Broken { path: PathBuf, source: toml::de::Error },
    #[error("the settings in {path} are of version {found}, not {VERSION}, and are left alone; remove the file", path = .path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("the settings in {path} are left alone: there is no {what} `{name}`", path = .path.display())]
    Name { path: PathBuf, what: &'static str, name: String },
}

/// Where the settings are kept; nowhere without a home.
pub(super) fn path() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    // A relative one is invalid by the specification of the directories.
    let base = named("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(PathBuf::from(named("HOME")?).join(".config")))?;
    Some(base.join("telltale/top.toml"))
}

/// The settings in the file; the usual ones where there is none.
pub(super) fn read(path: &Path) -> Result<ViewSettings, SettingsError> {
    let failed = |source| SettingsError::Read { path: path.into(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ViewSettings::default()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.is_file() || found.len() > MAX_FILE_BYTES => {
            let words = "not a file of this size";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, words)));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    parse(path, &text)
}

/// What says which version it is, whatever else is in the file.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn parse(path: &Path, text: &str) -> Result<ViewSettings, SettingsError> {
    let broken = |source| SettingsError::Broken { path: path.into(), source };
    let Versioned { version: found } = toml::from_str(text).map_err(broken)?;
    if found != VERSION {
        return Err(SettingsError::Version { path: path.into(), found });
    }
    let file: File = toml::from_str(text).map_err(broken)?;
    let missing =
        |what, name: &str| SettingsError::Name { path: path.into(), what, name: name.to_owned() };
    let column = |name: &String| Column::named(name).ok_or_else(|| missing("column", name));
    let mut columns = Vec::new();
    for name in &file.columns {
        let column = column(name)?;
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if columns.is_empty() || columns == ONCE_USUAL {
        columns = Column::USUAL.to_vec();
    }
    Ok(ViewSettings {
        theme: Theme::named(&file.theme).ok_or_else(|| missing("theme", &file.theme))?,
        columns,
        sort: column(&file.sort)?,
        descending: file.descending,
        tree: file.tree,
        details: file.details,
        pane: match &file.pane {
            Some(name) => Pane::named(name).ok_or_else(|| missing("pane", name))?,
            None => Pane::default(),
        },
        enlarged: file.enlarged,
        all_devices: file.all_devices,
        shown_metric: GraphValue::named(&file.metric)
            .ok_or_else(|| missing("metric", &file.metric))?,
    })
}

/// Writes the settings, whole or not at all.
pub(super) fn write(path: &Path, settings: &ViewSettings) -> io::Result<()> {
    let chosen = match settings.columns == Column::USUAL {
        true => &[][..],
        false => &settings.columns,
    };
    let file = File {
        version: VERSION,
        theme: settings.theme.name().to_owned(),
        columns: chosen.iter().map(|column| column.name().to_owned()).collect(),
        sort: settings.sort.name().to_owned(),
        descending: settings.descending,
        tree: settings.tree,
        details: settings.details,
        pane: Some(settings.pane.name().to_owned()),
        enlarged: settings.enlarged,
        all_devices: settings.all_devices,
        metric: settings.shown_metric.name().to_owned(),
    };
    let text = toml::to_string(&file).expect("names and flags are TOML");
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let new = path.with_extension(format!("toml.{}", std::process::id()));
    fs::write(&new, text)?;
    fs::rename(&new, path).inspect_err(|_| {
        // Leftovers do no harm, and the first error is the one to report.
        let _ = fs::remove_file(&new);
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use telltale_harness::Scratch;
    use telltale_smi::screen::{Column, GraphValue, Pane, Theme, ViewSettings};

    use super::{ONCE_USUAL, SettingsError, read, write};

    #[test]
    fn settings_survive_their_file() {
        let place = Scratch::new();
        let path = place.join("a/b/top.toml");
        assert_eq!(read(&path).unwrap(), ViewSettings::default());
        let settings = ViewSettings {
            theme: Theme::ColourBlind,
            columns: vec![Column::Command, Column::Hits],
            sort: Column::Up,
            descending: false,
            tree: true,
            details: false,
            pane: Pane::Alerts,
            enlarged: true,
            all_devices: true,
            shown_metric: GraphValue::named("power").unwrap(),
        };
        write(&path, &settings).unwrap();
        assert_eq!(read(&path).unwrap(), settings);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn settings_of_earlier_versions_are_read() {
        let place = Scratch::new();
        let path = place.join("top.toml");
        write(&path, &ViewSettings::default()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let added = ["pane", "enlarged", "all_devices"];
        let is_old = |line: &&str| !added.iter().any(|name| line.starts_with(name));
        let old: Vec<&str> = text.lines().filter(is_old).collect();
        assert_eq!(old.len() + added.len(), text.lines().count());
        fs::write(&path, old.join("\n")).unwrap();
        assert_eq!(read(&path).unwrap(), ViewSettings::default());
    }

    #[test]
    fn columns_that_were_not_chosen_stay_the_usual_ones() {
        let place = Scratch::new();
        let path = place.join("top.toml");
        let with = |columns: &[Column]| ViewSettings {
            columns: columns.to_vec(),
            tree: true,
            ..ViewSettings::default()
        };
        write(&path, &with(&Column::USUAL)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("tree = true") && !text.contains("columns"), "{text}");
        assert_eq!(read(&path).unwrap(), with(&Column::USUAL));
        // A list that an earlier version wrote with any other setting.
        write(&path, &with(&ONCE_USUAL)).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("columns"));
        assert_eq!(read(&path).unwrap(), with(&Column::USUAL));
        // The same in another order is a choice.
        let mut chosen = ONCE_USUAL;
        chosen.swap(0, 1);
        write(&path, &with(&chosen)).unwrap();
        assert_eq!(read(&path).unwrap(), with(&chosen));
    }

    #[test]
    fn what_cannot_be_read_is_reported() {
        let place = Scratch::new();
        let path = place.join("top.toml");
        let columns = vec![Column::Command, Column::Buffers];
        write(&path, &ViewSettings { columns, ..ViewSettings::default() }).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for (bad, expected) in [
            (String::from("theme = "), "are broken"),
            (String::from("version = 1\n"), "are broken"),
            (good.replace("version = 1", "version = 7"), "of version 7"),
            (format!("{good}new = 1\n"), "are broken"),
            (good.replace("\"default\"", "\"bright\""), "no theme `bright`"),
            (good.replace("\"buffers\"", "\"bufers\""), "no column `bufers`"),
            (good.replace("\"details\"", "\"detail\""), "no pane `detail`"),
        ] {
            fs::write(&path, &bad).unwrap();
            let error: SettingsError = read(&path).unwrap_err();
            assert!(error.to_string().contains(expected), "{bad}: {error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
    }
}
