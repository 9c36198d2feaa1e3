//! The page of one process: its whole command line, and its environment, which only its owner and root
//! may read. It stays as it was when it was opened.

use telltale_schema::reading::Reading;
use telltale_schema::snapshot::Process;

use super::beside::Availability;
use super::column;
use super::event::EnvironmentOwner;
use super::view::View;
use crate::usage;

/// What is on the page.
#[derive(Debug, Clone)]
pub(super) struct ProcessPage {
    target: Option<EnvironmentOwner>,
    title: String,
    about: Vec<String>,
    environment: Availability<Vec<String>>,
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
    pub(super) fn awaited(&self) -> Option<EnvironmentOwner> {
        self.target.filter(|_| self.environment == Availability::Awaited)
    }

    /// Takes the environment, or why it could not be read, if it is of this process.
    pub(super) fn take(&mut self, of: EnvironmentOwner, environment: Result<Vec<String>, String>) {
        if self.awaited() == Some(of) {
            self.environment = environment.map_or_else(Availability::Absent, Availability::Known);
        }
    }

    fn new(process: &Process) -> Self {
        let pid = crate::processes::pid(process.pid);
        let target = process.pid.zip(process.started_at);
        let target = target.map(|(pid, started_at)| EnvironmentOwner { pid, started_at });
        let command = match &process.command {
            Reading::Value { value, .. } => value.clone(),
            Reading::Absent { absent, .. } => format!("not available: {}", absent.words()),
        };
        let user = crate::processes::owner(process).text().to_owned();
        let mut about = vec![format!("user         {user}")];
        about.extend(column::container(process).map(|it| format!("container    {it}")));
        about.extend(usage::started(process).map(|it| format!("started      {it}")));
        about.extend([String::new(), command, String::new()]);
        let title = format!("Process {pid} {}", process.name);
        Self { target, title, about, environment: Availability::Awaited }
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let environment = match &self.environment {
            Availability::Awaited => vec![String::from("Environment: it is being read.")],
            Availability::Absent(why) => vec![format!("Environment: {why}")],
            Availability::Known(all) if all.is_empty() => {
                vec![String::from("Environment: it has none.")]
            }
            Availability::Known(all) => {
                let count = format!("Environment, {} variables:", all.len());
                [count].into_iter().chain(all.iter().cloned()).collect()
            }
        };
        self.about.iter().cloned().chain(environment).collect()
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
    view.past_words().is_some().then_some("it is of the present alone; p goes on with it.")
}
