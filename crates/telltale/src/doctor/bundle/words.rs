//! Texts for people, cleaned word by word: what tells who or where becomes a number, what came from
//! outside between quotes is left out, and so is whatever looks like a key or a secret.
//!
//! It errs on the side of hiding: a word is kept where it has the form of a plain word, of a small
//! number or of a path that the kernel, a package or this program gives its name to.

use std::net::{IpAddr, SocketAddr};

use telltale_ledger::directory::parse_name;
use telltale_node::configuration::Configuration;
use telltale_schema::chip::PciAddress;

use super::identity::Identity;
use super::numbers::Numbers;
use super::{GONE, OURS};

/// Parts of paths that every machine has, or that this program gives.
const PLACES: [&str; 36] = [
    "",
    ".",
    "..",
    "~",
    "accel",
    "bin",
    "class",
    "config",
    "dev",
    "docs",
    "dri",
    "etc",
    "home",
    "lib",
    "local",
    "metrics.sock",
    "nvidiactl",
    "opt",
    "proc",
    "root",
    "run",
    "share",
    "shm",
    "state",
    "sys",
    "system",
    "systemd",
    "telemetry.sock",
    "telltale",
    "telltale.service",
    "telltale.toml",
    "tmp",
    "tt",
    "user",
    "usr",
    "var",
];

/// Where the kernel gives the names below.
const KERNEL: [&str; 2] = ["sys", "proc"];

/// What drivers call their devices, before a number.
const DEVICES: [&str; 7] =
    ["accel", "card", "hwmon", "neuron", "nvidia", "renderD", "tenstorrent!"];

/// Ends of names of files that packages and this program make.
const ENDS: [&str; 8] = [".db", ".md", ".service", ".so", ".so.1", ".sock", ".socket", ".toml"];

/// NVIDIA's library, whose name is as long as a key.
const NVML: &str = "libnvidia-ml.so.1";

/// What keys of secrets have in their names.
const SECRETS: [&str; 8] =
    ["auth", "cookie", "credential", "key", "pass", "secret", "session", "token"];

/// Schemes of authorization, after which a secret stands.
const SCHEMES: [&str; 2] = ["basic", "bearer"];

/// Letters of the longest word that is kept.
const MAX_WORD: usize = 40;
/// Digits of the longest number that is kept: more may be those of a board.
const MAX_DIGITS: usize = 7;

/// Cleans texts, with the same number for the same name in all of them.
pub(super) struct Cleaner<'a> {
    identity: &'a Identity,
    numbers: Numbers,
    keys: Vec<String>,
}

// === impl Cleaner ===

impl<'a> Cleaner<'a> {
    /// A cleaner that goes on with the numbers that were given.
    pub(super) fn new(identity: &'a Identity, numbers: Numbers) -> Self {
        let keys = Configuration::keys().into_iter().map(|key| key.path).collect();
        Self { identity, numbers, keys }
    }

    /// A text without what tells who or where.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut before = String::new();
        for piece in without_quoted(text).split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            let (open, core, close) = punctuated(word);
            clean.push_str(open);
            clean.push_str(&self.after(&before, core));
            clean.push_str(close);
            clean.push_str(&piece[word.len()..]);
            before = core.to_ascii_lowercase() + close;
        }
        clean
    }

    /// The release of a kernel: whoever builds one may name it after a person or a machine.
    pub(super) fn release(&mut self, release: &str) -> String {
        let parts = release.split_inclusive(['-', '+', '.', '_']);
        let cleaned = parts.map(|part| {
            let name = part.trim_end_matches(['-', '+', '.', '_']);
            match self.identity.kind_of(name) {
                Some(kind) => self.numbers.named(kind, name) + &part[name.len()..],
                None => part.to_owned(),
            }
        });
        cleaned.collect()
    }

    /// A word behind another one.
    fn after(&mut self, before: &str, word: &str) -> String {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let names_secret = before.strip_suffix(':').is_some_and(is_secret);
        if !word.is_empty() && (SCHEMES.contains(&before) || names_secret) {
            return GONE.to_owned();
        }
        if matches!(before, "user" | "uid") && is_number && word != "0" {
            return self.numbers.named("uid", word);
        }
        self.word(word)
    }

    fn word(&mut self, word: &str) -> String {
        if let Some(kind) = self.identity.kind_of(word) {
            return self.numbers.named(kind, &word.to_ascii_lowercase());
        }
        if let Some((scheme, rest)) = word.split_once("://") {
            return self.url(scheme, rest);
        }
        if let Some((key, value)) = word.split_once('=') {
            return match is_secret(&key.to_ascii_lowercase()) {
                true => format!("{}={GONE}", self.word(key)),
                false => format!("{}={}", self.word(key), self.word(value)),
            };
        }
        if word.parse::<PciAddress>().is_ok() || self.keys.iter().any(|key| key == word) {
            return word.to_owned();
        }
        if let Some(rest) = word.strip_prefix("unix:") {
            return format!("unix:{}", self.word(rest));
        }
        if word.contains('/') {
            return self.path(word);
        }
        if word.contains('@') {
            return self.numbers.named("address", word);
        }
        self.address(word).unwrap_or_else(|| self.plain(word))
    }

    /// An address of the network, with a port or without.
    fn address(&mut self, word: &str) -> Option<String> {
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        let of_port = word.parse::<SocketAddr>().ok().map(|address| address.ip());
        if let Some(ip) = of_port.or_else(|| bare.parse::<IpAddr>().ok()) {
            let is_known = ip.is_loopback() || ip.is_unspecified();
            let shown =
                if is_known { word.to_owned() } else { self.numbers.named("ip", &ip.to_string()) };
            return Some(shown);
        }
        let (host, port) = word.rsplit_once(':')?;
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        Some(match (is_port, host) {
            (true, "localhost") => word.to_owned(),
            (true, host) if !host.contains(':') => {
                format!("{}:{port}", self.numbers.named("host", host))
            }
            // A hardware address, a link with its scope, and whatever else has colons.
            _ => self.numbers.named("address", word),
        })
    }

    fn url(&mut self, scheme: &str, rest: &str) -> String {
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let is_scheme = scheme.len() <= 8 && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_here = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        match is_scheme && is_here && path.len() <= 1 {
            true => format!("{scheme}://{rest}"),
            false if is_scheme => {
                format!("{scheme}://{}", self.numbers.named("url", rest))
            }
            false => GONE.to_owned(),
        }
    }

    /// A path, part by part; with a line and a column behind it, if it has these.
    fn path(&mut self, path: &str) -> String {
        let bare = path.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == ':');
        let (path, place) = match path[bare.len()..].find(':') {
            Some(colon) => path.split_at(bare.len() + colon),
            None => (path, ""),
        };
        let mut in_kernel = false;
        let mut before = "";
        let mut parts = Vec::new();
        for part in path.split('/') {
            in_kernel |= KERNEL.contains(&part) || is_device(part);
            let is_kernel = in_kernel && is_of_kernel(part);
            let is_page = before == "docs" && part.ends_with(".md") && is_word(part);
            let is_kept = PLACES.contains(&part)
                || OURS.contains(&part)
                || part.parse::<PciAddress>().is_ok()
                || is_device(part)
                || is_kernel
                || is_page
                || parse_name(part).is_some();
            parts.push(match self.identity.kind_of(part) {
                Some(kind) => self.numbers.named(kind, &part.to_ascii_lowercase()),
                None if is_kept => part.to_owned(),
                None => match part.strip_prefix("telltale-") {
                    Some(uid) => format!("telltale-{}", self.numbers.named("uid", uid)),
                    None => self.numbers.named("path", part),
                },
            });
            before = part;
        }
        parts.join("/") + place
    }

    /// A word without signs that give it a form.
    fn plain(&mut self, word: &str) -> String {
        if word.len() > MAX_WORD {
            return GONE.to_owned();
        }
        if is_id(word) && word != NVML {
            return self.numbers.named("id", word);
        }
        let is_file = ENDS.iter().any(|end| word.ends_with(end));
        let letters = |label: &str| label.bytes().any(|byte| byte.is_ascii_alphabetic());
        let is_dotted = word.split('.').filter(|label| letters(label)).count() > 1;
        match is_dotted && !is_file {
            true => self.numbers.named("host", &word.to_ascii_lowercase()),
            false => word.to_owned(),
        }
    }
}

/// A model's name without numbers that may be those of one device.
pub(super) fn without_numbers(text: &str) -> String {
    let words = text.split(' ').map(|word| if is_id(word) { GONE } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The text with everything between double quotes left out: it came from outside.
fn without_quoted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        kept.push(letter);
        if letter != '"' {
            continue;
        }
        let mut is_escaped = false;
        for inner in letters.by_ref() {
            if inner == '"' && !is_escaped {
                break;
            }
            is_escaped = inner == '\\' && !is_escaped;
        }
        kept.push_str(GONE);
        kept.push('"');
    }
    kept
}

/// A word between the signs that a sentence puts around it.
fn punctuated(word: &str) -> (&str, &str, &str) {
    let start = word.trim_start_matches(['(', '<', '{', '`', '\'', '"', ',', ';']);
    let open = &word[..word.len() - start.len()];
    let core =
        start.trim_end_matches([')', '>', '}', '`', '\'', '"', ',', ';', '.', ':', '!', '?']);
    (open, core, &start[core.len()..])
}

/// Whether a name is that of something secret, and no path to it.
fn is_secret(name: &str) -> bool {
    !name.contains('/') && SECRETS.iter().any(|secret| name.contains(secret))
}

/// Whether a word looks like a number or a key of one thing: a serial number, an id, a secret.
fn is_id(word: &str) -> bool {
    let mut digits_in_a_row = 0;
    let mut most = 0;
    for byte in word.bytes() {
        digits_in_a_row = if byte.is_ascii_digit() { digits_in_a_row + 1 } else { 0 };
        most = most.max(digits_in_a_row);
    }
    let count = |is: fn(&u8) -> bool| word.bytes().filter(is).count();
    let letters = count(u8::is_ascii_alphanumeric);
    let digits = count(u8::is_ascii_digit);
    let mixed = digits > 0 && count(u8::is_ascii_alphabetic) > 0;
    let cases = count(u8::is_ascii_uppercase) > 0 && count(u8::is_ascii_lowercase) > 0;
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit() || b"-:_x".contains(&byte));
    most > MAX_DIGITS
        || (mixed && letters >= 12)
        || (mixed && letters >= 8 && (cases || is_hex))
        || (is_hex && letters >= 16)
}

fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.!:".contains(&byte);
    !word.is_empty() && word.len() <= MAX_WORD && word.bytes().all(plain) && !is_id(word)
}

/// Whether it is a driver's name for a device: `card0`, `tenstorrent!1`.
fn is_device(part: &str) -> bool {
    let digits = DEVICES.iter().find_map(|name| part.strip_prefix(name));
    digits.is_some_and(|digits| {
        (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Whether a part of a path has the form of the kernel's own names.
fn is_of_kernel(part: &str) -> bool {
    is_word(part) && !part.bytes().any(|byte| byte.is_ascii_uppercase())
}
