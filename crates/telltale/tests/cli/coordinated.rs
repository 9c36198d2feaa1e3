//! `telltale cluster` and the coordinator's page: a real coordinator, whose nodes are played by the
//! test over gRPC as agents would.

mod nodes;
mod page;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, wait_until};

use crate::command::{PATIENCE, Said, said, telltale};
use nodes::Nodes;

const TOKEN: &str = "a-word-that-nobody-guesses-0123";

/// A coordinator of a job on three nodes.
struct Scene {
    nodes: Option<Nodes>,
    _coordinator: ChildGuard,
    grpc: String,
    http: String,
    place: Scratch,
}

impl Scene {
    fn new() -> Self {
        let place = Scratch::new();
        let token = place.join("token");
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = telltale();
        command.args(["coordinator", "--job", "trial", "--nodes", "3"]);
        command.args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        command.arg("--journal").arg(place.join("journal")).arg("--token-file").arg(&token);
        let mut coordinator = ChildGuard::spawn(command.stderr(Stdio::piped()));
        let mut lines = BufReader::new(coordinator.child().stderr.take().unwrap()).lines();
        let mut address = |before: &str| {
            let found = lines.by_ref().map(Result::unwrap).find_map(|line| {
                let (_, address) = line.split_once(before)?;
                Some(address.trim().to_owned())
            });
            found.unwrap_or_else(|| panic!("the coordinator does not say {before:?}"))
        };
        let grpc = address("listens for agents and operators on ");
        let http = format!("http://{}/", address("listens for HTTP on "));
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { nodes: None, _coordinator: coordinator, grpc, http, place }
    }

    /// Has nodes with these names attend.
    fn attend(&mut self, names: &[&str]) {
        self.nodes = Some(Nodes::attend(&self.grpc, TOKEN, names));
    }

    /// Runs `telltale cluster`.
    fn cluster(&self, arguments: &[&str]) -> Said {
        let mut command = telltale();
        command.arg("cluster").args(arguments).args(["--coordinator", &self.grpc]);
        said(command.arg("--token-file").arg(self.place.join("token")))
    }

    /// The same as JSON.
    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.cluster(&[arguments, &["--json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    fn until_it_runs(&self) {
        wait_until("the job to run", PATIENCE, || self.json(&["status"])["runs"] == true);
    }

    /// Has the worker of a node killed, and waits until that is answered.
    fn kill(&self, node: &str) {
        self.nodes.as_ref().unwrap().kill(node);
        wait_until("an incident that is answered", PATIENCE, || {
            self.json(&["incidents"])[0]["standing"] == "answered"
        });
    }
}

#[test]
fn who_asks_wrongly_is_told_why() {
    let scene = Scene::new();
    let unknown = scene.cluster(&["readmit", "nobody"]);
    unknown.complains(1, &["nobody"]);
    let json = scene.cluster(&["readmit", "nobody", "--json"]);
    assert_eq!(json.status, Some(1), "{json:?}");
    assert!(json.out.starts_with("{\"refused\":"), "{json:?}");
    let ask = |more: &[&str]| said(telltale().args(["cluster", "status"]).args(more));
    ask(&["--coordinator", &scene.grpc]).complains(2, &["token"]);
    ask(&["--coordinator", "127.0.0.1:1"]).complains(2, &["no coordinator answers at 127.0.0.1:1"]);
    // Of several, those that are there are found.
    let several = format!("127.0.0.1:1,{}", scene.grpc);
    let found = said(
        telltale()
            .args(["cluster", "status", "--coordinator", &several, "--token-file"])
            .arg(scene.place.join("token")),
    );
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.out.starts_with("Job trial: "), "{found:?}");
    for wrong in [&["mode", "fast"][..], &["drain"], &["--coordinator", "here", "status"]] {
        assert_eq!(said(telltale().arg("cluster").args(wrong)).status, Some(64), "{wrong:?}");
    }
}
