//! The page at `/`: files built into the program, so that it works without a network. Everything it
//! shows comes from this coordinator's own HTTP interface ([`super::api`]); clients not allowed to ask that
//! sees an empty page.

mod report;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use telltale_server::problem::Problem;

pub use report::report;

/// What a browser may load and run when it shows the page: this coordinator's own files alone.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// One file of the page.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal $content_type:literal;)*) => {
        &[$(Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("page/assets/", $name)),
        },)*]
    };
}

/// Every file; the first is the page itself.
const ASSETS: &[Asset] = assets! {
    "index.html" "text/html; charset=utf-8";
    "icon.svg" "image/svg+xml";
    "page.css" "text/css; charset=utf-8";
    "page.js" "text/javascript; charset=utf-8";
    "access.js" "text/javascript; charset=utf-8";
    "incident.js" "text/javascript; charset=utf-8";
    "matrix.js" "text/javascript; charset=utf-8";
    "steps.js" "text/javascript; charset=utf-8";
    "tables.js" "text/javascript; charset=utf-8";
};

/// The page.
pub(super) async fn index() -> Response {
    answer(&ASSETS[0])
}

/// One of its files.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => answer(asset),
        None => {
            let detail = "there is no such file";
            Problem::new(StatusCode::NOT_FOUND, detail).with_error().into_response()
        }
    }
}

fn answer(asset: &'static Asset) -> Response {
    let headers = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, asset.bytes).into_response()
}

/// What is in a file of the page; nothing where there is no such file.
fn text(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.and_then(|asset| std::str::from_utf8(asset.bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{ASSETS, text};
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_directory_is_served_and_nothing_else_is_loaded() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/page/assets");
        let there: BTreeSet<String> = std::fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let served: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(there, served);
        let loaded = text("index.html").split('"').filter_map(|part| part.strip_prefix("assets/"));
        let imported = served.iter().filter(|name| name.ends_with(".js")).flat_map(|name| {
            text(name).split("from \"./").skip(1).filter_map(|rest| rest.split('"').next())
        });
        let mut names = 0;
        for name in loaded.chain(imported) {
            assert!(served.contains(name), "{name}");
            names += 1;
        }
        assert!(names >= 6, "{names}");
    }

    #[test]
    fn nothing_comes_from_elsewhere_and_no_text_becomes_markup() {
        for asset in ASSETS {
            let own = text(asset.name).replace("http://www.w3.org/2000/svg", "");
            for refused in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "style=\"",
            ] {
                assert!(!own.contains(refused), "{}: {refused}", asset.name);
            }
        }
    }
}
