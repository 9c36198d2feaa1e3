//! The dashboard's queries, with values for Grafana's variables.

use serde_json::Value;

use crate::deploy::files::text;

/// How much of the past the dashboard shows here.
pub(crate) const RANGE_SECONDS: u64 = 300;

/// The dashboard, as it is imported.
pub(crate) struct Dashboard {
    pub(crate) file: Value,
}

/// A query of a panel.
#[derive(Debug)]
pub(crate) struct PanelQuery {
    pub(crate) panel: String,
    /// The letter by which the panel knows it.
    pub(crate) ref_id: String,
    expression: String,
    /// Whether it is asked about now only, and not about all of the range.
    pub(crate) is_instant: bool,
}

// === impl Dashboard ===

impl Dashboard {
    pub(crate) fn read() -> Self {
        Self { file: serde_json::from_str(&text("grafana/telltale.json")).unwrap() }
    }

    /// The queries of all panels.
    pub(crate) fn queries(&self) -> Vec<PanelQuery> {
        let panels = self.file["panels"].as_array().unwrap().iter();
        let queries = panels.flat_map(|panel| {
            let targets = panel["targets"].as_array().into_iter().flatten();
            targets.map(|target| PanelQuery {
                panel: panel["title"].as_str().unwrap().to_owned(),
                ref_id: target["refId"].as_str().unwrap().to_owned(),
                expression: target["expr"].as_str().unwrap().to_owned(),
                is_instant: target["instant"] == true,
            })
        });
        queries.collect()
    }

    /// A query with these values of variables; the others are as the dashboard is opened.
    pub(crate) fn query(&self, panel: &str, ref_id: &str, chosen: &[(&str, &str)]) -> String {
        let queries = self.queries();
        let found = queries.iter().find(|query| query.panel == panel && query.ref_id == ref_id);
        self.filled_in(found.unwrap_or_else(|| panic!("{panel} has no {ref_id}")), chosen)
    }

    /// The same of a query that was found already.
    pub(crate) fn filled_in(&self, query: &PanelQuery, chosen: &[(&str, &str)]) -> String {
        self.with_values(&query.expression, chosen)
    }

    /// The variables that are asked for: their names, and the series and label whose values they have.
    pub(crate) fn asked_for(&self) -> Vec<(String, String, String)> {
        let queried = self.variables().filter(|variable| variable["type"] == "query");
        let parts = queried.map(|variable| {
            let query = self.with_values(variable["query"]["query"].as_str().unwrap(), &[]);
            let inside = query.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
            let (selector, label) = inside.rsplit_once(", ").unwrap();
            let name = variable["name"].as_str().unwrap();
            (name.to_owned(), selector.to_owned(), label.to_owned())
        });
        parts.collect()
    }

    fn variables(&self) -> impl Iterator<Item = &Value> {
        self.file["templating"]["list"].as_array().unwrap().iter()
    }

    fn with_values(&self, text: &str, chosen: &[(&str, &str)]) -> String {
        let range = format!("{RANGE_SECONDS}s");
        let mut text = text.replace("$__rate_interval", "5m").replace("$__range", &range);
        for variable in self.variables() {
            let name = variable["name"].as_str().unwrap();
            let value = chosen.iter().find(|(chosen, _)| *chosen == name).map(|(_, value)| *value);
            // Where all are chosen, Grafana writes this value.
            let value = value.or(variable["allValue"].as_str());
            let value = value.or(variable["current"]["value"].as_str()).unwrap();
            text = text.replace(&format!("${name}"), value);
        }
        assert!(!text.contains('$'), "{text}");
        text
    }
}
