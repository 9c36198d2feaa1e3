//! The files for coordinators and agents: they are what their formats and the program understand, and
//! what docs/cluster-deploy.md tells comes together.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use telltale_control_plane::server::configuration::Configuration;
use telltale_harness::{ChildGuard, EtcdCluster, Scratch, needs_etcd, python_with, wait_until};

use crate::deploy::commands::{AGENT, COORDINATOR, built};
use crate::deploy::files::{deploy, in_repository, is_silent, text, tool, words, yaml};
use crate::deploy::installed::Installed;
use crate::deploy::kubernetes::{list, text as value};

const OBJECTS: &str = "kubernetes/cluster.yaml";
const COMPOSE: &str = "docker/compose.cluster.yaml";

/// Tenths of `systemd-analyze security`'s points that the units must not exceed. Workers need devices, the
/// network, namespaces and code that is made while they run.
const EXPOSURE_TENTHS: [(&str, &str); 2] = [(COORDINATOR_UNIT, "15"), (AGENT_UNIT, "40")];
const COORDINATOR_UNIT: &str = "telltale-coordinator@training.service";
const AGENT_UNIT: &str = "telltale-agent@training.service";

const TIMEOUT: Duration = Duration::from_secs(60);

/// Where containers have what proves who they are.
const ACCESS: &str = "/etc/telltale-access";

fn named<'a>(documents: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
    documents.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn pod(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]
}

/// The arguments of the only container of a pod, with its variables in place.
fn arguments(pod: &Value, variables: &[(&str, &str)]) -> Vec<String> {
    let put_in = |word: String| {
        let replaced = |word: String, (name, value): &(&str, &str)| word.replace(name, value);
        variables.iter().fold(word, replaced)
    };
    words(&list(&pod["containers"])[0]["args"]).into_iter().map(put_in).collect()
}

/// The program of the only container of a pod.
fn program(pod: &Value) -> String {
    let words = words(&list(&pod["containers"])[0]["command"]);
    let [program] = &words[..] else { panic!("{words:?} is no program alone") };
    program.clone()
}

/// Asserts that this installed program takes these words, up to what its workers run.
#[track_caller]
fn is_understood(program: &str, words: &[String]) {
    let own = words.split(|word| word == "--").next().unwrap();
    let mut command = Command::new(built(program));
    // What comes before is refused before help is given.
    let output = command.args(own).arg("--help").output().unwrap();
    assert!(output.status.success(), "{own:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The words after the program of the only command that a unit starts.
#[track_caller]
fn started(unit: &str, program: &str) -> Vec<String> {
    let text = text(unit);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("ExecStart="));
    let line = lines.next().unwrap().replace("%i", "training").replace("%d", "/run/credentials");
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], program);
    words[1..].to_vec()
}

#[test]
fn the_objects_fit_the_schemas_and_each_other() {
    let test = "deploy::the_objects_fit_the_schemas_and_each_other";
    let Some(mut validate) = python_with(test, "kubernetes_validate") else { return };
    validate.args(["-m", "kubernetes_validate", "--strict", "--quiet"]).arg(deploy(OBJECTS));
    is_silent(&validate.output().unwrap());
    let Some(documents) = yaml(test, OBJECTS) else { return };
    for (kind, name) in
        [("StatefulSet", "etcd"), ("StatefulSet", "coordinator"), ("Job", "training")]
    {
        let object = named(&documents, kind, name);
        let container = &list(&pod(object)["containers"])[0];
        let context = &container["securityContext"];
        assert_eq!(words(&context["capabilities"]["drop"]), ["ALL"], "{name}");
        assert_eq!(context["runAsNonRoot"], true, "{name}");
        assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
        let claims = list(&object["spec"]["volumeClaimTemplates"]).iter().map(|it| &it["metadata"]);
        let volumes: BTreeSet<&str> = list(&pod(object)["volumes"])
            .iter()
            .chain(claims)
            .map(|volume| value(volume, "name"))
            .collect();
        let mounts = list(&container["volumeMounts"]).iter();
        assert_eq!(mounts.map(|mount| value(mount, "name")).collect::<BTreeSet<_>>(), volumes);
        if kind == "StatefulSet" {
            let service = named(&documents, "Service", value(&object["spec"], "serviceName"));
            assert_eq!(service["spec"]["selector"], object["spec"]["selector"]["matchLabels"]);
            assert_eq!(service["spec"]["publishNotReadyAddresses"], true, "{name}");
        }
    }
    let job = pod(named(&documents, "Job", "training"));
    let access = list(&job["volumes"]).iter().find(|it| it["name"] == "access").unwrap();
    let given: Vec<&str> =
        list(&access["secret"]["items"]).iter().map(|item| value(item, "key")).collect();
    assert_eq!(given, ["token", "authority.pem"], "agents have no use for a key");
    assert!(job["terminationGracePeriodSeconds"].as_u64() > Some(15), "the agents' grace");
}

#[test]
fn what_is_started_is_a_command_of_the_program() {
    let test = "deploy::what_is_started_is_a_command_of_the_program";
    is_understood(COORDINATOR, &started("systemd/telltale-coordinator@.service", COORDINATOR));
    let environment = text("systemd/agent-training.env");
    let of = |name: &str| {
        let line = environment.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let agent = started("systemd/telltale-agent@.service", AGENT).into_iter().flat_map(|word| {
        match word.as_str() {
            "$OPTIONS" => of("OPTIONS="),
            "$COMMAND" => of("COMMAND="),
            _ => vec![word],
        }
    });
    is_understood(AGENT, &agent.collect::<Vec<_>>());
    let Some(files) = yaml(test, COMPOSE) else { return };
    let services = &files[0]["services"];
    let coordinator = words(&services["coordinator"]["command"]);
    is_understood(&coordinator[0], &coordinator[1..]);
    assert_eq!(words(&services["node-0"]["entrypoint"]), [AGENT]);
    is_understood(AGENT, &words(&services["node-0"]["command"]));
    let Some(documents) = yaml(test, OBJECTS) else { return };
    let coordinator = pod(named(&documents, "StatefulSet", "coordinator"));
    is_understood(&program(coordinator), &arguments(coordinator, &[("$(POD)", "coordinator-0")]));
    let job = pod(named(&documents, "Job", "training"));
    let arguments = arguments(job, &[("$(NODE)", "machine-7"), ("$(ADDRESS)", "10.0.0.7")]);
    is_understood(&program(job), &arguments);
}

#[test]
fn the_example_of_a_configuration_is_one() {
    let example = deploy("systemd/coordinator-training.toml");
    let plan = Configuration::read(&example).unwrap().plan().unwrap();
    assert_eq!((plan.job.slots, plan.job.workers.get()), (4, 8));
    // The lines for etcd in the place of the journal.
    let text = fs::read_to_string(example).unwrap();
    let with_etcd: String = text
        .lines()
        .filter(|line| !line.starts_with("journal"))
        .filter(|line| !line.contains("etcd_authority"))
        .map(|line| line.strip_prefix("#   ").unwrap_or(line).replace("https://", "http://") + "\n")
        .collect();
    let scratch = Scratch::new();
    fs::write(scratch.join("c.toml"), with_etcd).unwrap();
    Configuration::read(&scratch.join("c.toml")).unwrap().plan().unwrap();
}

#[test]
fn compose_takes_the_cluster_once_the_image_is_named() {
    let test = "deploy::compose_takes_the_cluster_once_the_image_is_named";
    let compose = || {
        let mut command = Command::new("docker-compose");
        command.arg("--file").arg(deploy(COMPOSE)).args(["config", "--quiet"]);
        command
    };
    let Some(output) = tool(test, compose().env("WORKLOAD_IMAGE", "workload")) else { return };
    is_silent(&output);
    assert!(!compose().env_remove("WORKLOAD_IMAGE").output().unwrap().status.success());
}

#[test]
fn systemd_has_nothing_to_say_of_the_clusters_units() {
    let test = "deploy::systemd_has_nothing_to_say_of_the_clusters_units";
    let installed = Installed::new();
    let root = format!("--root={}", installed.root().display());
    let units = installed.path("/usr/lib/systemd/system");
    for name in ["sysinit.target", "basic.target", "shutdown.target", "network-online.target"] {
        fs::write(units.join(name), "[Unit]\nDescription=of systemd\n").unwrap();
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", &root, COORDINATOR_UNIT, AGENT_UNIT]);
    let Some(output) = tool(test, &mut verify) else { return };
    is_silent(&output);
    for (unit, tenths) in EXPOSURE_TENTHS {
        let mut security = Command::new("systemd-analyze");
        security.args(["security", "--offline=true", "--no-pager", &root]);
        let output = security.arg(format!("--threshold={tenths}")).arg(unit).output().unwrap();
        let points = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{points}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The commands of docs/cluster-deploy.md that make certificates, for other names.
fn certificates(names: &str) -> String {
    let page = fs::read_to_string(in_repository("docs/cluster-deploy.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let commands: String = blocks.filter(|block| block.contains("openssl")).collect();
    let (_, rest) = commands.split_once('\n').unwrap();
    assert!(commands.starts_with("names="), "{commands}");
    format!("set -e\nnames={names}\n{rest}")
}

#[test]
fn with_certificates_as_told_the_job_of_the_example_runs() {
    let test = "deploy::with_certificates_as_told_the_job_of_the_example_runs";
    if !needs_etcd(test) {
        return;
    }
    let Some(documents) = yaml(test, OBJECTS) else { return };
    let scratch = Scratch::new();
    let place = scratch.path().to_str().unwrap();
    let mut make = Command::new("sh");
    make.args(["-c", &certificates("DNS:localhost")]).current_dir(scratch.path());
    let Some(made) = tool(test, &mut make) else { return };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let etcd = EtcdCluster::start(1);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let configuration =
        value(&named(&documents, "ConfigMap", "coordinator")["data"], "coordinator.toml");
    let members = ["http://etcd-0.etcd:2379", "http://etcd-1.etcd:2379", "http://etcd-2.etcd:2379"];
    let mut configuration = configuration.replace(ACCESS, place);
    for member in members {
        assert!(configuration.contains(member), "{member}");
        configuration = configuration.replace(member, &etcd.addresses()[0]);
    }
    // One node and one worker of it are enough here.
    configuration =
        configuration.replace("nodes = 4", "nodes = 1").replace("workers = 8", "workers = 1");
    fs::write(scratch.join("coordinator.toml"), configuration).unwrap();
    let (listens, reported) = (format!("127.0.0.1:{port}"), scratch.join("reported"));
    let mut coordinator = daemon(COORDINATOR, &scratch);
    coordinator.args(["--no-http", "--listen", &listens, "--config"]);
    coordinator.arg(scratch.join("coordinator.toml"));
    coordinator.arg(format!("--advertise=localhost:{port}"));
    let _coordinator = ChildGuard::spawn(&mut coordinator);
    let localhost = format!("localhost:{port}");
    let job = pod(named(&documents, "Job", "training"));
    let arguments = arguments(
        job,
        &[
            ("coordinator-0.coordinator:9440", &localhost),
            ("coordinator-1.coordinator:9440", &localhost),
            ("$(NODE)", "machine-7"),
            ("$(ADDRESS)", "127.0.0.1"),
            ("/var/lib/telltale-agent", scratch.join("agent").to_str().unwrap()),
            ("--workers=8", "--workers=1"),
            (ACCESS, place),
        ],
    );
    let own = arguments.split(|word| word == "--").next().unwrap();
    let mut agent = daemon(AGENT, &scratch);
    agent.args(own).args(["--", "sh", "-c", "echo \"$RANK of $WORLD_SIZE\" >\"$TOLD\""]);
    let mut agent = ChildGuard::spawn(agent.env("TOLD", &reported));
    let ended = agent.wait_within("the job to be over", TIMEOUT);
    assert!(ended.success(), "{ended}: {}", log(&scratch));
    wait_until("the worker's word", TIMEOUT, || reported.exists());
    assert_eq!(fs::read_to_string(&reported).unwrap(), "0 of 1\n");
}

/// What was built of an installed program, which logs into the directory.
fn daemon(program: &str, scratch: &Scratch) -> Command {
    let log = fs::OpenOptions::new().create(true).append(true).open(scratch.join("log")).unwrap();
    let mut command = Command::new(built(program));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command
}

fn log(scratch: &Scratch) -> String {
    fs::read_to_string(Path::new(&scratch.join("log"))).unwrap_or_default()
}
