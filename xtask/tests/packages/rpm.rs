//! The RPM package, by rpm itself on Debian: its scripts run, its configuration is kept, and it goes.

use super::made::{is_tried, made};
use super::system::System;

#[test]
fn it_is_installed_upgraded_and_erased() {
    if !is_tried("rpm::it_is_installed_upgraded_and_erased") {
        return;
    }
    let system = System::debian("bookworm", &["rpm"]);
    let package = system.put(&made("telltale-", ".x86_64.rpm"), "/packages");
    // Debian has no database of RPM, so nothing that the package needs is in it.
    let rpm = "rpm --nodeps";
    let before = system.files();
    system.ok(&format!("{rpm} --install {package} && telltale smi && {rpm} --verify telltale"));
    system.ok("getent passwd telltale && test -d /var/lib/telltale && test -d /run/tt");
    let needed = system.ok(&format!("rpm --query --requires --package {package}"));
    assert!(needed.contains("libc.so.6(GLIBC_2.28)(64bit)"), "{needed}");
    for file in ["/usr/lib/systemd/system/telltale.service", "/usr/share/man/man1/telltale-smi.1"] {
        let owner =
            system.ok(&format!("rpm --query --file {file} || rpm --query --file {file}.gz"));
        assert!(owner.starts_with("telltale-"), "{owner}");
    }
    system.ok("echo 'interval_seconds = 2' >> /etc/telltale/telltale.toml");
    system.ok(&format!("{rpm} --upgrade --force {package} && telltale smi"));
    let config = system.ok("cat /etc/telltale/telltale.toml");
    assert!(config.ends_with("interval_seconds = 2\n"), "{config}");

    system.ok(&format!("{rpm} --erase telltale"));
    // Convention of RPM: accounts stay, as do changed configurations, under a name that says so.
    let kept = |file: &&String| {
        let path = file.split(' ').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_account =
            ["passwd", "group", "shadow", "gshadow"].iter().any(|it| name.starts_with(it));
        let is_database = path.starts_with("/var/lib/rpm") || path.starts_with("/root/.rpmdb");
        // Directories that the packages of systemd and of shells own, where those are.
        let is_shared = ["/usr/lib/sysusers.d", "/usr/share/fish", "/usr/share/zsh"]
            .iter()
            .any(|shared| path.starts_with(shared) && file.split(' ').nth(1) == Some("d"));
        !is_account && !is_database && !is_shared && !before.contains(file)
    };
    let after = system.files();
    let left: Vec<&str> =
        after.iter().filter(kept).map(|file| file.split(' ').next().unwrap()).collect();
    assert_eq!(left, ["/etc/telltale", "/etc/telltale/telltale.toml.rpmsave", "/var/lib/telltale"]);
}
