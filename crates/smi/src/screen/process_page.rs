//! The page of one process: its whole command line, and its environment, which only its owner and root
//! may read. It stays as it was when it was opened, but for a line where the process is gone.

use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Process, ProcessState, Snapshot};

use super::beside::Availability;
use super::column;
use super::event::{ProcessTarget, ProcessTexts};
use super::view::View;
use crate::usage;

/// What is on the page.
#[derive(Debug, Clone)]
pub(super) struct ProcessPage {
    target: Option<ProcessTarget>,
    title: String,
    about: Vec<String>,
    command: String,
    /// Why the newest snapshot does not have the process as it was.
    gone: Option<&'static str>,
    environment: Availability<Vec<String>>,
    is_environment_cut: bool,
}

// === impl ProcessPage ===

impl ProcessPage {
    /// The page of the selected process; none where none is.
    pub(super) fn of_selected(view: &View) -> Option<Self> {
        let (_, place) = view.selected_process()?;
        let shown = view.shown.as_ref()?;
        let mut page = Self::new(&shown.processes[place]);
        let unseen = page.target.is_none().then_some("this process cannot be seen from here.");
        if let Some(why) = refusal(view).or(unseen) {
            page.environment = Availability::Absent(why.to_owned());
        }
        Some(page)
    }

    /// Whose environment the page waits for.
    pub(super) fn awaited(&self) -> Option<ProcessTarget> {
        self.target.filter(|_| self.environment == Availability::Awaited)
    }

    /// Takes the texts, if they are of this process. What the snapshot has of the command line stays
    /// where there is no more.
    pub(super) fn take(&mut self, of: ProcessTarget, texts: ProcessTexts) {
        if self.awaited() != Some(of) {
            return;
        }
        let ProcessTexts { command, environment, is_environment_cut } = texts;
        self.is_environment_cut = is_environment_cut;
        self.command = command.unwrap_or_else(|| std::mem::take(&mut self.command));
        self.environment = environment.map_or_else(Availability::Absent, Availability::Known);
    }

    /// Compares with the newest snapshot of this machine. A process that still runs is in none once it
    /// has let go of its devices.
    pub(super) fn follow(&mut self, snapshot: &Snapshot) {
        let Some(target) = self.target else { return };
        let is_it = |process: &&Process| process.identity == Some(target.identity);
        self.gone = match snapshot.processes.iter().find(is_it) {
            None => Some("It has ended, or has no device open any more."),
            Some(process) if process.state == ProcessState::Dead => Some("It has ended."),
            Some(_) => None,
        };
    }

    fn new(process: &Process) -> Self {
        let pid = crate::processes::pid(process.pid);
        let target = process.pid.zip(process.identity);
        let target = target.map(|(pid, identity)| ProcessTarget { pid, identity });
        let command = match &process.command {
            Reading::Value { value, .. } => value.clone(),
            Reading::Absent { absent, .. } => format!("not available: {}", absent.words()),
        };
        let user = crate::processes::owner(process).text().to_owned();
        let mut about = vec![format!("user         {user}")];
        about.extend(column::container(process).map(|it| format!("container    {it}")));
        about.extend(usage::started(process).map(|it| format!("started      {it}")));
        let title = format!("Process {pid} {}", process.name);
        let environment = Availability::Awaited;
        let is_environment_cut = false;
        Self { target, title, about, command, gone: None, environment, is_environment_cut }
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let environment = match &self.environment {
            Availability::Awaited => vec![String::from("Environment: it is being read.")],
            Availability::Absent(why) => vec![format!("Environment: {why}")],
            Availability::Known(first) if self.is_environment_cut => {
                let count = format!("Environment, the first {} variables:", first.len());
                [count].into_iter().chain(first.iter().cloned()).collect()
            }
            Availability::Known(all) if all.is_empty() => {
                vec![String::from("Environment: it has none.")]
            }
            Availability::Known(all) => {
                let count = format!("Environment, {} variables:", all.len());
                [count].into_iter().chain(all.iter().cloned()).collect()
            }
        };
        let mut lines: Vec<String> = self.gone.iter().map(|words| String::from(*words)).collect();
        lines.extend(self.about.iter().cloned());
        lines.extend([String::new(), self.command.clone(), String::new()]);
        lines.extend(environment);
        lines
    }
}

/// Why the environment of what is shown cannot be asked for.
fn refusal(view: &View) -> Option<&'static str> {
    if view.fleet.is_some() {
        return Some("it is read on the process's own machine: open `telltale top` there.");
    }
    if view.recorded.is_some() {
        return Some("a recording has none.");
    }
    view.past_words().is_some().then_some("it can be read in the present only; p goes back to it.")
}
