//! The DaemonSet: it fits Kubernetes' schemas, its parts fit together, and its commands are ours.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use telltale_harness::{Scratch, python_with};

use crate::deploy::commands::{probes, serves, telltale};
use crate::deploy::dockerfile;
use crate::deploy::files::{deploy, is_silent, words, yaml};

const FILE: &str = "kubernetes/daemonset.yaml";

/// The only directories that the service may write to.
const WRITABLE: [&str; 2] = ["/run/tt", "/var/lib/telltale"];

/// Where the names of pods, and the devices they were given, come from (docs/serve.md).
const OF_THE_KUBELET: [&str; 3] =
    ["/var/lib/kubelet/pod-resources", "/var/log/pods", "/var/log/containers"];

pub(crate) fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    let mut found = documents.iter().filter(|document| document["kind"] == kind);
    let one = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "two of {kind}");
    one
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{value} has no {key}"))
}

#[test]
fn it_fits_the_schemas_without_a_field_that_they_do_not_know() {
    let test = "deploy::it_fits_the_schemas_without_a_field_that_they_do_not_know";
    let Some(mut python) = python_with(test, "kubernetes_validate") else { return };
    python.args(["-m", "kubernetes_validate", "--strict", "--quiet"]).arg(deploy(FILE));
    is_silent(&python.output().unwrap());
}

#[test]
fn its_service_and_probes_are_commands_of_the_program() {
    let test = "deploy::its_service_and_probes_are_commands_of_the_program";
    let Some(documents) = yaml(test, FILE) else { return };
    let pod = &of_kind(&documents, "DaemonSet")["spec"]["template"]["spec"];
    let [service] = list(&pod["containers"]) else { panic!("one container") };
    let mut variables = dockerfile::variables();
    let own = list(&service["env"]).iter();
    variables.extend(own.map(|one| (text(one, "name").into(), text(one, "value").into())));
    let shown = serves(&words(&service["command"]), &variables);
    assert_eq!(shown["state_dir"], "/var/lib/telltale");
    let port = format!(":{}", service["ports"][0]["containerPort"]);
    assert!(shown["http.listen"][0].as_str().unwrap().ends_with(&port));
    for probe in ["readinessProbe", "livenessProbe"] {
        probes(&words(&service[probe]["exec"]["command"]));
    }
    let place = Scratch::new();
    let configuration = of_kind(&documents, "ConfigMap");
    for (name, content) in configuration["data"].as_object().unwrap() {
        fs::write(place.join(name), content.as_str().unwrap()).unwrap();
        let mut check = telltale(&[]);
        let output = check.args(["config", "check"]).arg(place.join(name)).output().unwrap();
        is_silent(&output);
    }
    let mounted = list(&service["volumeMounts"]).iter();
    let mounted = mounted.map(|mount| text(mount, "mountPath")).collect::<Vec<_>>();
    assert!(mounted.contains(&"/etc/telltale"), "where the program looks for its file");
}

#[test]
fn every_mount_has_its_volume_and_only_two_can_be_written_to() {
    let test = "deploy::every_mount_has_its_volume_and_only_two_can_be_written_to";
    let Some(documents) = yaml(test, FILE) else { return };
    let pod = &of_kind(&documents, "DaemonSet")["spec"]["template"]["spec"];
    let volumes: BTreeSet<&str> = list(&pod["volumes"]).iter().map(|it| text(it, "name")).collect();
    let containers = list(&pod["initContainers"]).iter().chain(list(&pod["containers"]));
    let mounts: Vec<&Value> = containers.flat_map(|it| list(&it["volumeMounts"])).collect();
    let used: BTreeSet<&str> = mounts.iter().map(|mount| text(mount, "name")).collect();
    assert_eq!(used, volumes);
    let service = &list(&pod["containers"])[0];
    let own = list(&service["volumeMounts"]);
    for mount in own {
        let path = text(mount, "mountPath");
        assert_eq!(mount["readOnly"] == true, !WRITABLE.contains(&path), "{path}");
    }
    for path in OF_THE_KUBELET {
        assert!(own.iter().any(|mount| text(mount, "mountPath") == path), "{path}");
        // The same path on the node, which the kubelet has by default.
        let host = |it: &Value| it["hostPath"]["path"] == path;
        assert!(list(&pod["volumes"]).iter().any(host), "{path}");
    }
}

#[test]
fn the_service_has_no_privilege() {
    let test = "deploy::the_service_has_no_privilege";
    let Some(documents) = yaml(test, FILE) else { return };
    let pod = &of_kind(&documents, "DaemonSet")["spec"]["template"]["spec"];
    let context = &list(&pod["containers"])[0]["securityContext"];
    assert_eq!(words(&context["capabilities"]["drop"]), ["ALL"]);
    assert!(context["capabilities"].get("add").is_none());
    assert_eq!(context["runAsNonRoot"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    let user = format!("{}:{}", context["runAsUser"], context["runAsGroup"]);
    assert_eq!(user, dockerfile::only("USER"));
    assert_eq!(pod["automountServiceAccountToken"], false, "it never asks the API server");
}
