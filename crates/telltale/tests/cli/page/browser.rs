//! Chromium without a window, driven by its DevTools protocol over a pair of pipes
//! (<https://chromedevtools.github.io/devtools-protocol/>): messages are JSON, each with a zero byte
//! after it. A pipe opens no port, and this much of the protocol needs no package of its own.
//!
//! Nothing but this machine's loopback is reached: each request of the page is stopped, and goes on
//! only to there. What was tried is kept, and so is what the page complained about.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use telltale_harness::{ChildGuard, Scratch, skip, wait_until};

use crate::cli::command::TIMEOUT;

/// How long one answer of the browser may take: it is a big program on what may be a busy machine.
const ANSWER: Duration = Duration::from_secs(120);

/// What the browser is called, from the one that is tried first.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A browser with one page.
pub(crate) struct Browser {
    child: ChildGuard,
    to: ChildStdin,
    from: Receiver<Value>,
    last_call: u64,
    session: Option<String>,
    /// Where requests for the stream of snapshots go instead, if anywhere.
    pub(crate) stream: Option<String>,
    /// Addresses that were asked for.
    pub(crate) requests: Vec<String>,
    /// Errors and warnings of the page or the browser, and uncaught exceptions.
    pub(crate) complaints: Vec<String>,
    profile: Scratch,
}

impl Browser {
    /// A browser, or none after the test was recorded as skipped.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(program) = program() else {
            skip(test, "needs chromium");
            return None;
        };
        let profile = Scratch::new();
        let mut command = Command::new("sh");
        // The browser reads from descriptor 3 and writes to descriptor 4.
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"]).arg(program);
        command.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run"]);
        command.args(["--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]);
        command.args(["--disable-background-networking", "--disable-component-update"]);
        // A second wall behind the one that stops requests: no name is looked up.
        command.arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if rustix::process::geteuid().is_root() {
            // Chromium refuses to run as root in its sandbox.
            command.arg("--no-sandbox");
        }
        command.arg("about:blank").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ChildGuard::spawn(command.stderr(Stdio::null()));
        let to = child.child().stdin.take().unwrap();
        let mut pipe = BufReader::new(child.child().stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            last_call: 0,
            session: None,
            stream: None,
            requests: Vec::new(),
            complaints: Vec::new(),
            profile,
        };
        browser.attach();
        Some(browser)
    }

    /// Opens another tab, which is the one that everything goes to from now on.
    pub(crate) fn another_tab(&mut self) {
        self.session = None;
        self.attach();
    }

    fn attach(&mut self) {
        let page = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", attach);
        self.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network", "Performance"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.call("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]}));
        self.window(1280, 900, false);
    }

    /// Calls a method of the protocol, and gives back its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        let call = self.send(method, parameters);
        loop {
            let message = self.from.recv_timeout(ANSWER).unwrap_or_else(|error| {
                panic!("{method} is not answered: {error}; complaints: {:?}", self.complaints)
            });
            if message["id"] == call {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn send(&mut self, method: &str, parameters: Value) -> u64 {
        let session = self.session.clone().map_or(Value::Null, Value::from);
        self.send_to(&session, method, parameters)
    }

    /// Sends to the tab of this session; to the browser itself where that is null.
    fn send_to(&mut self, session: &Value, method: &str, parameters: Value) -> u64 {
        self.last_call += 1;
        let mut message = json!({"id": self.last_call, "method": method, "params": parameters});
        if !session.is_null() {
            message["sessionId"] = session.clone();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.last_call
    }

    /// Takes note of what the browser tells by itself, and decides on requests.
    fn note(&mut self, message: &Value) {
        let reported = &message["params"];
        match message["method"].as_str() {
            Some("Fetch.requestPaused") => self.decide(&message["sessionId"], reported),
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(reported["exceptionDetails"].to_string());
            }
            Some("Runtime.consoleAPICalled") => self.complaints.push(reported["args"].to_string()),
            Some("Log.entryAdded") => {
                let entry = &reported["entry"];
                self.complaints.push(format!("{} {}", entry["text"], entry["url"]));
            }
            _ => {}
        }
    }

    fn decide(&mut self, session: &Value, reported: &Value) {
        let address = reported["request"]["url"].as_str().unwrap().to_owned();
        let request = &reported["requestId"];
        let (method, parameters) = if !address.starts_with("http://127.0.0.1:") {
            ("Fetch.failRequest", json!({"requestId": request, "errorReason": "AccessDenied"}))
        } else if let Some(stream) = &self.stream
            && address.ends_with("/api/v1/stream?usage=true")
        {
            ("Fetch.continueRequest", json!({"requestId": request, "url": stream}))
        } else {
            ("Fetch.continueRequest", json!({"requestId": request}))
        };
        self.requests.push(address);
        // The answer is of no interest: a page that was left takes its requests back.
        self.send_to(session, method, parameters);
    }

    /// Opens an address.
    #[track_caller]
    pub(crate) fn open(&mut self, address: &str) {
        let opened = self.call("Page.navigate", json!({"url": address}));
        assert!(opened["errorText"].is_null(), "{opened}");
        self.until("document.readyState === 'complete'");
    }

    /// The value of an expression in the page; of a promise, what it promised.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", parameters);
        let thrown = &result["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        result["result"]["value"].clone()
    }

    /// The same of one that is a text.
    #[track_caller]
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&mut self, expression: &str) {
        wait_until(expression, TIMEOUT, || self.value(expression) == true);
    }

    /// Presses a key, as a keyboard does: a letter, or the name of a key without a letter.
    #[track_caller]
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Backspace" => 8,
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            letter if letter.chars().count() == 1 => letter,
            _ => "",
        };
        let mut event = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if !text.is_empty() {
            event["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Types a text where the focus is.
    #[track_caller]
    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Gives the window a size; a phone's shows twice as many pixels.
    pub(crate) fn window(&mut self, width: u32, height: u32, phone: bool) {
        let scale = if phone { 2 } else { 1 };
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Has the page believe that its reader prefers these, such as `prefers-color-scheme: dark`.
    pub(crate) fn prefer(&mut self, preferences: &[(&str, &str)]) {
        let features: Vec<Value> =
            preferences.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// A picture of the window, as a PNG file in the letters of base 64.
    pub(crate) fn picture(&mut self) -> String {
        let taken = self.call("Page.captureScreenshot", json!({"format": "png"}));
        taken["data"].as_str().unwrap().to_owned()
    }

    /// Writes one into the directory that `TELLTALE_PICTURES` names, if it does.
    pub(crate) fn keep_picture(&mut self, name: &str) {
        let Some(directory) = std::env::var_os("TELLTALE_PICTURES") else { return };
        let file = PathBuf::from(directory).join(format!("{name}.png"));
        std::fs::write(file, decoded(&self.picture())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to end, it ends its processes itself, which then no longer write into the profile.
        let close = format!("{}\0", json!({"id": 0, "method": "Browser.close"}));
        if self.to.write_all(close.as_bytes()).is_ok() && !std::thread::panicking() {
            self.child.wait_within("the browser to end", TIMEOUT);
        }
        let _ = std::fs::remove_dir_all(self.profile.path().join("Default"));
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = PROGRAMS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.into_iter().find(|file| file.is_file())
}

/// Bytes that were written in the letters of base 64.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|letter| *letter != b'=').collect();
    let groups = letters.chunks(4).flat_map(|group| {
        let bits = group.iter().fold(0u32, |bits, letter| bits << 6 | u32::from(value(*letter)));
        let missing = 4 - group.len();
        let bits = (bits << (6 * missing)).to_be_bytes();
        bits[1..4 - missing].to_vec()
    });
    groups.collect()
}
