//! A job's training steps as a page in one file, which is checked without a coordinator.
//!
//! It is drawn by the same scripts as the coordinator's page.

use serde::Serialize;

use super::text;
use crate::view::JobStepsView;

/// The scripts that draw it, each after those whose names it uses.
const SCRIPTS: [&str; 2] = ["tables.js", "steps.js"];

/// What the page shows.
#[derive(Debug, Serialize)]
struct Content<'a> {
    heading: &'a str,
    about: &'a str,
    steps: &'a JobStepsView,
}

/// The page; `heading` and `about` are shown above the steps.
#[must_use]
pub fn report(heading: &str, about: &str, steps: &JobStepsView) -> String {
    let content = Content { heading, about, steps };
    let content = serde_json::to_string(&content).unwrap_or_default();
    // Nothing of it ends the element that it is in.
    let content = content.replace('<', "\\u003c");
    let scripts: String = SCRIPTS.into_iter().flat_map(|name| in_one(text(name))).collect();
    let style = text("page.css");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Telltale: training steps</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{style}</style>\n</head>\n<body>\n<header><h1 id=\"heading\"></h1></header>\n<main>\n\
         <p id=\"about\"></p>\n<section id=\"steps\" aria-labelledby=\"steps-title\"></section>\n</main>\n\
         <script type=\"application/json\" id=\"content\">{content}</script>\n<script type=\"module\">\n{scripts}\
         const content = JSON.parse(document.getElementById(\"content\").textContent);\n\
         document.getElementById(\"heading\").textContent = content.heading;\n\
         document.getElementById(\"about\").textContent = content.about;\n\
         showSteps(document.getElementById(\"steps\"), content.steps);\n</script>\n</body>\n</html>\n"
    )
}

/// The lines of a script without what joins it to others.
fn in_one(script: &'static str) -> impl Iterator<Item = String> {
    let lines = script.lines().filter(|line| !line.starts_with("import "));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_what_is_reported_becomes_markup() {
        let content = "</script><b>";
        let page = report(content, content, &JobStepsView::default());
        assert!(!page.contains(content) && page.contains("\\u003c/script>"), "{page}");
        assert!(!page.contains("\nimport ") && !page.contains("\nexport "), "{page}");
    }
}
