//! The container a process runs in, from the text of `/proc/<pid>/cgroup`. Pure.
//!
//! Engines name a container's cgroup after it, each in its way; what is recognised is data here.

use telltale_schema::snapshot::Container;

/// Prefixes that engines put before a container's id when systemd makes the cgroup.
const PREFIXES: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-", "cri-o"),
    ("libpod-", "podman"),
    ("containerd-", "containerd"),
];

/// Parents of a cgroup that is named by the id alone.
const PARENTS: [(&str, &str); 4] = [
    ("docker", "docker"),
    ("libpod_parent", "podman"),
    ("k8s.io", "containerd"),
    ("default", "containerd"),
];

/// The container that the lines of a cgroup file (version 1 or 2) report.
pub(crate) fn container(text: &str) -> Option<Container> {
    text.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        of_path(path)
    })
}

fn of_path(path: &str) -> Option<Container> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (id, engine) = (0..segments.len()).rev().find_map(|place| {
        named(segments[place])
            .or_else(|| bare(segments[place], segments.get(place.wrapping_sub(1))))
    })?;
    let pod_uid = segments.iter().find_map(|segment| pod_uid(segment));
    Some(Container { id: id.to_owned(), engine: engine.to_owned(), pod_uid, pod: None })
}

/// `docker-<id>.scope`, `kubepods-…:cri-containerd:<id>`.
fn named(segment: &str) -> Option<(&str, &'static str)> {
    let segment = segment.strip_suffix(".scope").unwrap_or(segment);
    if let Some((rest, id)) = segment.rsplit_once(':') {
        let engine = rest.rsplit(':').next()?;
        let known = PREFIXES.iter().find(|(prefix, _)| prefix.strip_suffix('-') == Some(engine))?;
        return is_id(id).then_some((id, known.1));
    }
    PREFIXES.iter().find_map(|(prefix, engine)| {
        let id = segment.strip_prefix(prefix)?;
        is_id(id).then_some((id, *engine))
    })
}

/// An id alone, as engines write it that make cgroups themselves.
fn bare<'a>(segment: &'a str, parent: Option<&&str>) -> Option<(&'a str, &'static str)> {
    let parent = parent?;
    if !is_id(segment) {
        return None;
    }
    let known = PARENTS.iter().find(|(name, _)| name == parent).map(|(_, engine)| *engine);
    let engine = known.or_else(|| pod_uid(parent).map(|_| "containerd"))?;
    Some((segment, engine))
}

/// The 64 hexadecimal digits of a container's id.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The uid in `pod<uid>` or `kubepods-burstable-pod<uid with underscores>.slice`; a static pod's
/// has no hyphens.
fn pod_uid(segment: &str) -> Option<String> {
    let segment = segment.split(':').next()?;
    let segment = segment.strip_suffix(".slice").unwrap_or(segment);
    let uid = match segment.strip_prefix("pod") {
        Some(uid) => uid,
        None => segment.strip_prefix("kubepods")?.rsplit_once("-pod")?.1,
    };
    let uid = uid.replace('_', "-");
    let digits = uid.bytes().filter(|byte| *byte != b'-');
    let clean = digits.clone().count() == 32 && digits.clone().all(|byte| byte.is_ascii_hexdigit());
    (clean && matches!(uid.len(), 32 | 36)).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::container;
    use proptest::prelude::*;

    const ID: &str = "3f2a9cbf5d1e4c6b8a7090807060504030201000f0e0d0c0b0a0908070605040";
    const POD: &str = "5f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f";

    fn check(text: &str, expected: Option<(&str, Option<&str>)>) {
        let text =
            text.replace("ID", ID).replace("POD_", &POD.replace('-', "_")).replace("POD", POD);
        let found = container(&text);
        let seen = found.as_ref().map(|found| {
            assert_eq!(found.id, ID);
            (found.engine.as_str(), found.pod_uid.as_deref())
        });
        assert_eq!(seen, expected, "{text}");
    }

    #[test]
    fn engines_are_reported_by_their_cgroups() {
        let cases = [
            ("12:memory:/docker/ID\n11:cpu:/docker/ID", "docker", None),
            ("0::/system.slice/docker-ID.scope", "docker", None),
            ("0::/system.slice/docker-ID.scope/init", "docker", None),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
                "podman",
                None,
            ),
            ("0::/machine.slice/libpod-ID.scope", "podman", None),
            ("4:pids:/libpod_parent/libpod-ID", "podman", None),
            (
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podPOD_.slice/cri-containerd-ID.scope",
                "containerd",
                Some(POD),
            ),
            ("0::/kubepods.slice/kubepods-podPOD_.slice/crio-ID.scope", "cri-o", Some(POD)),
            ("9:memory:/kubepods/besteffort/podPOD/ID", "containerd", Some(POD)),
            ("9:memory:/kubepods/podPOD/crio-ID", "cri-o", Some(POD)),
            (
                "1:name=systemd:/system.slice/containerd.service/kubepods-besteffort-podPOD_.slice:cri-containerd:ID",
                "containerd",
                Some(POD),
            ),
            ("0::/default/ID", "containerd", None),
            ("3:cpu:/\n0::/docker/ID", "docker", None),
        ];
        for (text, engine, pod) in cases {
            check(text, Some((engine, pod)));
        }
    }

    #[test]
    fn other_cgroups_are_no_containers() {
        for text in [
            "",
            "0::/",
            "0::/user.slice/user-1000.slice/session-3.scope",
            "0::/system.slice/docker.service",
            "0::/kubepods.slice/kubepods-podPOD_.slice/crio-conmon-ID.scope",
            "0::/docker/IDff",
            "0::/somebody/ID",
            "junk",
            "::::",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in "[a-f0-9:/._=pod-]{0,200}", any in ".{0,100}") {
            let _ = container(&text);
            let _ = container(&any);
        }
    }
}
