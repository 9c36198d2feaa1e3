//! A real Prometheus on the loopback, which scrapes one service each second.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use telltale_harness::{ChildGuard, Scratch, skip};

/// How long it may take to answer: much longer than it does.
const ANSWERING: Duration = Duration::from_secs(60);
/// What it logs before its address, and when it answers queries.
const LISTENS: &str = "msg=\"Listening on\" address=";
const READY: &str = "Server is ready to receive web requests";

/// The server, for as long as a test holds it.
pub(crate) struct Prometheus {
    _process: ChildGuard,
    address: String,
    _place: Scratch,
}

/// A series of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    labels: BTreeMap<String, String>,
    /// One for a moment, several for a range.
    pub(crate) values: Vec<f64>,
}

// === impl Prometheus ===

impl Prometheus {
    /// Starts one that scrapes `target` with this token. None where it is not installed, which is
    /// recorded for `test`.
    pub(crate) fn start(test: &str, target: &str, token: &str) -> Option<Self> {
        let place = Scratch::new();
        let job = json!({
            "job_name": "telltale",
            "authorization": {"credentials": token},
            "static_configs": [{"targets": [target]}],
        });
        let global = json!({"scrape_interval": "1s", "scrape_timeout": "1s"});
        // JSON is YAML.
        let configuration = json!({"global": global, "scrape_configs": [job]});
        fs::write(place.join("prometheus.yml"), configuration.to_string()).unwrap();
        let mut command = Command::new("prometheus");
        command.args(["--web.listen-address=127.0.0.1:0", "--storage.tsdb.path=data"]);
        command.arg("--config.file=prometheus.yml").current_dir(place.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let Ok(child) = command.spawn() else {
            skip(test, "there is no prometheus");
            return None;
        };
        let mut process = ChildGuard::new(child);
        let mut log = BufReader::new(process.child().stderr.take().unwrap()).lines();
        // Under load it is ready before it says where it listens.
        let (mut address, mut is_ready) = (None, false);
        while address.is_none() || !is_ready {
            let line = log.next().expect("Prometheus ended before it was ready").unwrap();
            is_ready |= line.contains(READY);
            address = address.or_else(|| Some(line.split_once(LISTENS)?.1.trim().to_owned()));
        }
        let address = address.unwrap();
        // A writer to a pipe without a reader is killed.
        std::thread::spawn(move || log.for_each(drop));
        Some(Self { _process: process, address, _place: place })
    }

    /// What a query returns now.
    #[track_caller]
    pub(crate) fn now(&self, query: &str) -> Vec<Series> {
        let data = self.data("query", &[("query", query)]);
        // A scalar is no vector; no panel asks for one.
        assert_eq!(data["resultType"], "vector", "{query}");
        series(&data, |one| vec![number(&one["value"])])
    }

    /// What it returns for the last seconds, one value each second.
    #[track_caller]
    pub(crate) fn lately(&self, query: &str, seconds: u64) -> Vec<Series> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let (start, end) = ((now - seconds).to_string(), now.to_string());
        let pairs = [("query", query), ("start", &start), ("end", &end), ("step", "1")];
        let data = self.data("query_range", &pairs);
        series(&data, |one| one["values"].as_array().unwrap().iter().map(number).collect())
    }

    /// The values of a label of these series.
    #[track_caller]
    pub(crate) fn label_values(&self, selector: &str, label: &str) -> Vec<String> {
        let data = self.data(&format!("label/{label}/values"), &[("match[]", selector)]);
        serde_json::from_value(data).unwrap()
    }

    #[track_caller]
    fn data(&self, path: &str, pairs: &[(&str, &str)]) -> Value {
        let pairs = pairs.iter().map(|(name, value)| format!("{}={}", coded(name), coded(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(ANSWERING)).unwrap();
        write!(stream, "GET /api/v1/{path}?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let mut body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (&body["status"], &body["warnings"]),
            (&json!("success"), &Value::Null),
            "{body}"
        );
        body["data"].take()
    }
}

// === impl Series ===

impl Series {
    /// The value of a label; empty where it has none.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map(String::as_str).unwrap_or_default()
    }

    /// All of its labels.
    pub(crate) fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

fn series(data: &Value, values: impl Fn(&Value) -> Vec<f64>) -> Vec<Series> {
    let all = data["result"].as_array().unwrap().iter();
    let labels = |one: &Value| serde_json::from_value(one["metric"].clone()).unwrap();
    all.map(|one| Series { labels: labels(one), values: values(one) }).collect()
}

/// The second of a time and a value.
fn number(pair: &Value) -> f64 {
    pair[1].as_str().unwrap().parse().unwrap()
}

/// As it is written in a URL.
fn coded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
