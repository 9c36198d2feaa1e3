//! What an image has, on the system that its Dockerfile begins with.

use std::process::Command;

use super::made::{is_tried, made, root};
use super::system::{System, printed};

#[test]
fn the_service_runs_of_it_as_the_images_user() {
    if !is_tried("image::the_service_runs_of_it_as_the_images_user") {
        return;
    }
    let system = System::debian("bookworm", &[]);
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--file"]).arg(made("telltale-", "x86_64-image.tar.gz"));
    printed("tar", &tar.arg("--directory").arg(system.path("/")).output().unwrap());
    let dockerfile = std::fs::read_to_string(root().join("deploy/docker/Dockerfile")).unwrap();
    let account =
        dockerfile.split("RUN groupadd").nth(1).and_then(|rest| rest.split("\nCOPY").next());
    system.ok(&format!(
        "groupadd{}",
        account.expect("the accounts of the image").replace("\\\n", " ")
    ));
    // /run/tt, the state directory and the user are those of the file; health is what it asks.
    let health = system.ok("export TELLTALE_STATE_DIR=/var/lib/telltale
        setpriv --reuid=4350 --regid=4350 --clear-groups /usr/bin/telltale-serve &
        for i in $(seq 100); do /usr/bin/telltale health && exit 0; sleep 0.1; done; exit 1");
    assert!(health.contains("serving"), "{health}");
}
