//! The three compose files, and what their containers run.

use std::process::Command;

use serde_json::Value;

use crate::deploy::commands::serves;
use crate::deploy::dockerfile;
use crate::deploy::files::{deploy, is_silent, tool, words, yaml};

const VARIANTS: [&str; 3] = [
    "docker/compose.shared-volume.yaml",
    "docker/compose.host-directory.yaml",
    "docker/compose.shares-nothing.yaml",
];

/// What a person sets before starting them.
const VARIABLES: [(&str, &str); 3] =
    [("WORKLOAD_IMAGE", "workload"), ("TELLTALE_UID", "4350"), ("TELLTALE_GID", "4350")];

fn service(file: &Value) -> &Value {
    &file["services"]["telltale"]
}

#[test]
fn compose_takes_them_once_their_variables_are_set() {
    for variant in VARIANTS {
        let compose = || {
            let mut command = Command::new("docker-compose");
            command.arg("--file").arg(deploy(variant)).args(["config", "--quiet"]);
            command
        };
        let mut command = compose();
        let test = "deploy::compose_takes_them_once_their_variables_are_set";
        let Some(output) = tool(test, command.envs(VARIABLES)) else { return };
        is_silent(&output);
        let mut command = compose();
        let refused = command.env_remove("WORKLOAD_IMAGE").output().unwrap();
        assert!(!refused.status.success(), "{variant}: nobody is told to name the image");
    }
}

#[test]
fn the_service_runs_as_the_program_understands_and_confined() {
    let test = "deploy::the_service_runs_as_the_program_understands_and_confined";
    for variant in VARIANTS {
        let Some(files) = yaml(test, variant) else { return };
        let service = service(&files[0]);
        let command = service.get("command").map_or_else(dockerfile::command, words);
        let mut variables = dockerfile::variables();
        let own = service["environment"].as_object().into_iter().flatten();
        variables.extend(own.map(|(name, value)| (name.clone(), value.as_str().unwrap().into())));
        let shown = serves(&command, &variables);
        assert_eq!(shown["state_dir"], "/var/lib/telltale", "{variant}");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{variant}");
        assert_eq!(service["read_only"], true, "{variant}");
        let options = words(&service["security_opt"]);
        assert!(options.contains(&"no-new-privileges:true".to_owned()), "{variant}");
        assert!(service.get("privileged").is_none() && service.get("devices").is_none());
        let adds = service.get("cap_add").map(words).unwrap_or_default();
        match variant.contains("shares-nothing") {
            true => assert_eq!(adds, ["SYS_PTRACE", "DAC_READ_SEARCH"]),
            false => assert!(adds.is_empty(), "{variant}: {adds:?}"),
        }
        assert_eq!(service["pid"], "host", "{variant}: it tells whose a socket is by its pid");
    }
}

#[test]
fn both_sides_of_a_shared_directory_have_it_at_one_place() {
    let test = "deploy::both_sides_of_a_shared_directory_have_it_at_one_place";
    for variant in &VARIANTS[..2] {
        let Some(files) = yaml(test, variant) else { return };
        let volumes = |name: &str| words(&files[0]["services"][name]["volumes"]);
        let at_run_tt = |volume: &&String| volume.ends_with(":/run/tt");
        let (ours, theirs) = (volumes("telltale"), volumes("workload"));
        assert!(ours.iter().any(|volume| at_run_tt(&volume)), "{variant}");
        assert_eq!(ours.iter().find(at_run_tt), theirs.iter().find(at_run_tt), "{variant}");
    }
}
