//! A job's training steps as a page in one file, which is looked at without a coordinator.
//!
//! It is drawn by the same scripts as the coordinator's page.

use serde::Serialize;

use super::text;
use crate::view::JobStepsView;

/// The scripts that draw it, each after those whose names it uses.
const SCRIPTS: [&str; 2] = ["tables.js", "steps.js"];

/// What the page is told.
#[derive(Debug, Serialize)]
struct Told<'a> {
    heading: &'a str,
    about: &'a str,
    steps: &'a JobStepsView,
}

/// The page; `heading` and `about` are shown above the steps.
#[must_use]
pub fn report(heading: &str, about: &str, steps: &JobStepsView) -> String {
    let told = Told { heading, about, steps };
    let told = serde_json::to_string(&told).unwrap_or_default();
    // Nothing of it ends the element that it is in.
    let told = told.replace('<', "\\u003c");
    let scripts: String = SCRIPTS.into_iter().flat_map(|name| in_one(text(name))).collect();
    let style = text("page.css");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Telltale: training steps</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{style}</style>\n</head>\n<body>\n<header><h1 id=\"heading\"></h1></header>\n<main>\n\
         <p id=\"about\"></p>\n<section id=\"steps\" aria-labelledby=\"steps-title\"></section>\n</main>\n\
         <script type=\"application/json\" id=\"told\">{told}</script>\n<script type=\"module\">\n{scripts}\
         const told = JSON.parse(document.getElementById(\"told\").textContent);\n\
         document.getElementById(\"heading\").textContent = told.heading;\n\
         document.getElementById(\"about\").textContent = told.about;\n\
         showSteps(document.getElementById(\"steps\"), told.steps);\n</script>\n</body>\n</html>\n"
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
    fn nothing_of_what_is_told_becomes_markup() {
        let told = "</script><b>";
        let page = report(told, told, &JobStepsView::default());
        assert!(!page.contains(told) && page.contains("\\u003c/script>"), "{page}");
        assert!(!page.contains("\nimport ") && !page.contains("\nexport "), "{page}");
    }
}
