//! The page at `/`: files built into the program, so that it works without a network. Everything
//! it shows comes from the service's own HTTP interface; it has no other source and no other host.
//!
//! The plots are drawn by uPlot 1.6.32 (MIT), kept in `page/assets/vendor` as its authors publish it.

/// What a browser may load and run when it shows the page: this service's own files alone. The
/// page sets no style attributes in its text, so inline styles stay refused.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// One file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asset {
    /// Its name below `/assets/`; `index.html` is also the page itself.
    pub(crate) name: &'static str,
    /// Its media type.
    pub(crate) content_type: &'static str,
    /// Its bytes.
    pub(crate) bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! assets {
    ($($name:literal $path:literal $content_type:expr;)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("page/assets/", $path)),
        },)*]
    };
}

/// Every file of the page.
pub(crate) const ASSETS: &[Asset] = assets! {
    "index.html" "index.html" HTML;
    "icon.svg" "icon.svg" ICON;
    "colours.css" "colours.css" STYLE;
    "page.css" "page.css" STYLE;
    "tables.css" "tables.css" STYLE;
    "page.js" "page.js" SCRIPT;
    "access.js" "access.js" SCRIPT;
    "address.js" "address.js" SCRIPT;
    "cells.js" "cells.js" SCRIPT;
    "colours.js" "colours.js" SCRIPT;
    "device.js" "device.js" SCRIPT;
    "devices.js" "devices.js" SCRIPT;
    "filter.js" "filter.js" SCRIPT;
    "format.js" "format.js" SCRIPT;
    "health.js" "health.js" SCRIPT;
    "held.js" "held.js" SCRIPT;
    "history.js" "history.js" SCRIPT;
    "holders.js" "holders.js" SCRIPT;
    "keys.js" "keys.js" SCRIPT;
    "map.js" "map.js" SCRIPT;
    "panel.js" "panel.js" SCRIPT;
    "plots.js" "plots.js" SCRIPT;
    "process.js" "process.js" SCRIPT;
    "processes.js" "processes.js" SCRIPT;
    "recent.js" "recent.js" SCRIPT;
    "sensors.js" "sensors.js" SCRIPT;
    "stream.js" "stream.js" SCRIPT;
    "table.js" "table.js" SCRIPT;
    "theme.js" "theme.js" SCRIPT;
    "totals.js" "totals.js" SCRIPT;
    "usage.js" "usage.js" SCRIPT;
    "uPlot.min.js" "vendor/uPlot.min.js" SCRIPT;
    "uPlot.min.css" "vendor/uPlot.min.css" STYLE;
    "uPlot.LICENSE" "vendor/uPlot.LICENSE" TEXT;
};

/// The page itself.
pub(crate) fn index() -> Asset {
    ASSETS[0]
}

/// The file of this name.
pub(crate) fn asset(name: &str) -> Option<Asset> {
    ASSETS.iter().copied().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ASSETS, asset, index};
    use telltale_schema::reading::Absence;

    fn text(name: &str) -> &'static str {
        std::str::from_utf8(asset(name).unwrap().bytes).unwrap()
    }

    #[test]
    fn every_file_of_the_directory_is_served_and_nothing_else_is_named() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/assets");
        let names = |directory: &std::path::Path| -> Vec<String> {
            let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
            let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
            files.map(|entry| entry.file_name().into_string().unwrap()).collect()
        };
        let mut there: BTreeSet<String> = names(&root).into_iter().collect();
        there.extend(names(&root.join("vendor")));
        let served: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(there, served);
        assert_eq!(index().name, "index.html");
    }

    #[test]
    fn what_a_file_loads_is_there() {
        let page = text("index.html");
        let loaded = page.split(['"', '\'']).filter_map(|part| part.strip_prefix("assets/"));
        let mut found = 0;
        for name in loaded {
            assert!(asset(name).is_some(), "{name}");
            found += 1;
        }
        assert!(found >= 5, "{found}");
        for script in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            if script.name.starts_with("uPlot") {
                continue;
            }
            let imports = text(script.name).split("from \"./").skip(1);
            for name in imports.filter_map(|rest| rest.split('"').next()) {
                assert!(asset(name).is_some(), "{} imports {name}", script.name);
            }
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_no_text_becomes_markup() {
        for own in ASSETS.iter().filter(|asset| !asset.name.starts_with("uPlot")) {
            let own_text = text(own.name).replace("http://www.w3.org/2000/svg", "");
            for refused in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "style=\"",
            ] {
                assert!(!own_text.contains(refused), "{}: {refused}", own.name);
            }
        }
    }

    #[test]
    fn the_page_has_words_for_every_absence() {
        let format = text("format.js");
        for absence in Absence::ALL {
            let name = serde_json::to_value(absence).unwrap();
            let line = format!("  {}: \"{}\",", name.as_str().unwrap(), absence.words());
            assert!(format.contains(&line), "{line}");
        }
    }
}
