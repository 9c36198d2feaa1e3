//! The pictures of the documents, and the same screens in other sizes: the page and `telltale top` on a Galaxy with
//! several workloads, and `telltale demo`, in light and in dark.
//!
//! `cargo xtask pictures` runs this with `TELLTALE_PICTURES=DIR`, which keeps the pictures in DIR after the five
//! minutes that it takes to have a history to show. Without it they are made, checked and dropped.

pub(super) mod cells;
mod demo;
mod drawn;
mod page;
mod terminal;
mod workloads;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use telltale_harness::Scratch;

use crate::cli::page::browser::{Browser, decoded};
use crate::cli::page::fixture::{Fixture, TOKEN};

/// The light and the dark one, as the page's readers prefer them and as terminals have them.
const SCHEMES: [&str; 2] = ["light", "dark"];

/// The most that a picture of the documents may have.
const MOST_BYTES: u64 = 300_000;

/// The share of a picture that has its commonest colour, of every seventh pixel.
const COMMONEST: &str = "(async (encoded) => {
    const bytes = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    context.drawImage(bitmap, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
    const counts = new Map();
    for (let at = 0; at < pixels.length; at += 7) counts.set(pixels[at], (counts.get(pixels[at]) ?? 0) + 1);
    return Math.max(...counts.values()) / Math.ceil(pixels.length / 7);
})";

/// Where pictures go, and which were made.
struct Album {
    directory: PathBuf,
    made: BTreeSet<String>,
}

impl Album {
    /// Takes a picture of the browser's window, which has this many pixels, and checks that something is on it.
    #[track_caller]
    fn take(&mut self, browser: &mut Browser, name: &str, size: (u32, u32)) {
        let encoded = browser.picture();
        let picture = decoded(&encoded);
        let number = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
        assert_eq!(&picture[1..4], b"PNG", "{name}");
        assert_eq!((number(16), number(20)), size, "pixels of {name}");
        let commonest = browser.value(&format!("{COMMONEST}('{encoded}')")).as_f64().unwrap();
        assert!((0.05..0.985).contains(&commonest), "{commonest} of {name} has one colour");
        fs::write(self.directory.join(format!("{name}.png")), picture).unwrap();
        self.made.insert(format!("{name}.png"));
    }
}

/// The pictures in `docs`, each of which a document must show.
fn documented() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = |directory: &Path, ending: &str| -> Vec<PathBuf> {
        let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|it| it == ending)).collect()
    };
    let documents = [names(&root, "md"), names(&root.join("docs"), "md")].concat();
    let texts: Vec<String> =
        documents.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let pictures = names(&root.join("docs"), "png");
    let pictures =
        pictures.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned());
    pictures
        .inspect(|name| {
            let link = [format!("({name})"), format!("(docs/{name})")];
            let is_shown = texts.iter().any(|text| link.iter().any(|link| text.contains(link)));
            assert!(is_shown, "no document shows {name}");
            let bytes = fs::metadata(root.join("docs").join(name)).unwrap().len();
            assert!(bytes < MOST_BYTES, "{name} has {bytes} bytes");
        })
        .collect()
}

#[test]
fn every_picture_of_the_documents_is_made_here() {
    let test = "pictures::every_picture_of_the_documents_is_made_here";
    let Some(mut browser) = Browser::start(test) else { return };
    let scratch = Scratch::new();
    let kept = std::env::var_os("TELLTALE_PICTURES").map(PathBuf::from);
    let has_history = kept.is_some();
    let directory = kept.unwrap_or_else(|| scratch.path().to_owned());
    let mut album = Album { directory, made: BTreeSet::new() };

    let mut fixture = Fixture::new("galaxy-wormhole");
    workloads::start(&mut fixture);
    let Some(mut top) = terminal::Watched::start(test, &fixture) else { return };
    fixture.serve("0.5", true, page::RULES);
    fixture.open(&mut browser, Some(TOKEN));
    page::wait(&mut browser, has_history);
    page::take(&mut browser, &mut album);
    terminal::take(&mut top, &mut browser, &mut album);
    demo::take(test, &mut browser, &mut album);

    assert_eq!(browser.complaints, Vec::<String>::new());
    let missing: Vec<String> = documented().difference(&album.made).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "pictures of the documents that were not made");
}
