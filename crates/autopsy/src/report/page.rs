//! The report as a page of one file: the text, each process's threads, and the JSON that it was made of.

use std::fmt::Write as _;

use super::AutopsyReport;
use crate::activity;
use crate::evidence::{ProcessEvidence, ThreadEvidence};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
color:#1b1f24;background:#fff}pre{background:#f4f5f7;padding:.8rem;overflow:auto;border-radius:6px}\
h1{font-size:1.3rem}summary{cursor:pointer}@media(prefers-color-scheme:dark){body{color:#e6e8eb;\
background:#15181c}pre{background:#22272e}}";

impl AutopsyReport {
    /// A page that needs no other file and runs no script.
    #[must_use]
    pub fn page(&self) -> String {
        let sentence =
            self.explanation.as_ref().map_or("Nothing stands still", |one| &one.sentence);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">\
             <title>Telltale autopsy</title><style>{STYLE}</style></head><body>\n\
             <h1>{}</h1>\n<pre>{}</pre>\n",
            escaped(sentence),
            escaped(self.details().trim_start())
        );
        for process in &self.processes {
            add_process(&mut page, process);
        }
        // Within a script element nothing but its own end is read as a mark.
        let json = self.json().replace('<', "\\u003c");
        let _ = writeln!(
            page,
            "<script type=\"application/json\" id=\"autopsy\">{json}</script>\n</body></html>"
        );
        page
    }
}

fn add_process(page: &mut String, process: &ProcessEvidence) {
    let rank = process.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
    let _ = writeln!(
        page,
        "<details><summary>{rank}process {} ({})</summary>",
        process.pid,
        escaped(&process.name)
    );
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&process.context.command.join(" ")));
    for thread in process.samples.last().iter().flat_map(|sample| &sample.threads) {
        add_thread(page, thread);
    }
    for child in &process.children {
        add_process(page, child);
    }
    page.push_str("</details>\n");
}

fn add_thread(page: &mut String, thread: &ThreadEvidence) {
    let mut lines = format!(
        "thread {} {} ({}): {}\n",
        thread.tid,
        thread.name,
        thread.state,
        activity::of(thread).words()
    );
    for frame in thread.python.iter().flat_map(|stack| &stack.frames) {
        let _ = writeln!(lines, "  {} ({}:{})", frame.function, frame.file, frame.line);
    }
    if thread.python.is_some() && !thread.native.is_empty() {
        lines.push_str("  native:\n");
    }
    for frame in &thread.native {
        let function = frame.function.as_deref().unwrap_or("?");
        let _ = writeln!(lines, "  {function} ({}+{:#x})", frame.module, frame.offset);
    }
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&lines));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
