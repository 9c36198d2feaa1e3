//! Names of pods and containers from the kubelet's log directories. Only names in directories are
//! read, no log: that takes no right beyond listing them.
//!
//! `/var/log/pods/<namespace>_<pod>_<uid>/<container>/` has a directory for each container that was
//! started; `/var/log/containers/<pod>_<namespace>_<container>-<id>.log` a link for each that runs,
//! which says which id is which name (`pkg/kubelet/kuberuntime/{helpers,legacy}.go` of Kubernetes).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use telltale_schema::reading::Absence;
use telltale_schema::snapshot::Pod;

use crate::tree::{Tree, Unreadable};

/// A directory for each pod.
pub(super) const PODS: &str = "var/log/pods";
/// A link for each container.
const CONTAINERS: &str = "var/log/containers";

/// The longest name of a namespace or a container (RFC 1123 label).
const MAX_LABEL_BYTES: usize = 63;
/// The longest name of a pod (RFC 1123 subdomain).
const MAX_NAME_BYTES: usize = 253;

/// A container whose names are searched for.
#[derive(Debug)]
pub(super) struct ContainerQuery {
    pub(super) id: String,
    /// Its pod's uid.
    pub(super) uid: String,
}

/// What the directories say.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By container id.
    pub(super) pods: HashMap<String, Pod>,
    /// What could not be read, and why.
    pub(super) errors: Vec<(String, Absence, String)>,
    /// There are such directories.
    pub(super) present: bool,
}

/// The names of these containers' pods. May hang.
pub(super) fn find(tree: &Arc<Tree>, wanted: &[ContainerQuery]) -> Names {
    let mut found = Names::default();
    let uids: HashSet<&str> = wanted.iter().map(|one| one.uid.as_str()).collect();
    let ids: HashSet<&str> = wanted.iter().map(|one| one.id.as_str()).collect();
    let (directories, links) = (found.list(tree, PODS), found.list(tree, CONTAINERS));
    let (directories, links) = (of_pods(&directories, &uids), of_links(&links, &ids));
    for ContainerQuery { id, uid } in wanted {
        let directory = directories.get(uid.as_str());
        let linked = links.get(id.as_str()).and_then(Option::as_ref);
        let pod = match (directory, linked) {
            // Two directories for one uid, or a link that is of another pod: one of them is wrong.
            (Some(None), _) => continue,
            (Some(Some((_, pod))), Some(link)) if !is_same(pod, link) => continue,
            (_, Some(link)) => link.clone(),
            (Some(Some((name, pod))), None) => {
                let container = found.only_container(tree, name);
                Pod { container, ..pod.clone() }
            }
            (None, None) => continue,
        };
        found.pods.insert(id.clone(), pod);
    }
    found
}

fn is_same(one: &Pod, other: &Pod) -> bool {
    (&one.namespace, &one.name) == (&other.namespace, &other.name)
}

// === impl Names ===

impl Names {
    /// The names in a directory; none when it is not there.
    fn list(&mut self, tree: &Tree, path: &str) -> Vec<String> {
        match tree.root().directory(path).and_then(|directory| directory.names()) {
            Ok(names) => {
                self.present = true;
                names
            }
            Err(error) if error.is_missing() => Vec::new(),
            Err(error) => {
                self.present = true;
                self.error(tree, path, &error);
                Vec::new()
            }
        }
    }

    /// The pod's container, if only one was ever started in it.
    fn only_container(&mut self, tree: &Tree, directory: &str) -> Option<String> {
        let path = format!("{PODS}/{directory}");
        let mut names = self.list(tree, &path).into_iter().filter(|name| is_label(name));
        let first = names.next()?;
        names.next().is_none().then_some(first)
    }

    fn error(&mut self, tree: &Tree, path: &str, error: &Unreadable) {
        self.errors.push((tree.display(path), error.absence(), error.to_string()));
    }
}

/// Directory and names by the uids that are wanted; none where several have one uid.
fn of_pods<'a>(
    names: &'a [String],
    wanted: &HashSet<&str>,
) -> HashMap<&'a str, Option<(&'a str, Pod)>> {
    let mut found = HashMap::new();
    for name in names {
        let mut parts = name.splitn(3, '_');
        let (Some(namespace), Some(pod), Some(uid)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if wanted.contains(uid)
            && let Some(pod) = pod_named(namespace, pod)
        {
            let entry = Some((name.as_str(), pod));
            found.entry(uid).and_modify(|known| *known = None).or_insert(entry);
        }
    }
    found
}

/// Names by the container ids that are wanted; none where several have one id.
fn of_links<'a>(names: &'a [String], wanted: &HashSet<&str>) -> HashMap<&'a str, Option<Pod>> {
    let mut found = HashMap::new();
    for name in names {
        let Some((names, id)) = name.strip_suffix(".log").and_then(|stem| stem.rsplit_once('-'))
        else {
            continue;
        };
        let mut parts = names.splitn(3, '_');
        let (Some(pod), Some(namespace), Some(container)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if wanted.contains(id)
            && is_label(container)
            && let Some(pod) = pod_named(namespace, pod)
        {
            let entry = Some(Pod { container: Some(container.to_owned()), ..pod });
            found.entry(id).and_modify(|known| *known = None).or_insert(entry);
        }
    }
    found
}

/// A pod, where these are names that Kubernetes allows.
fn pod_named(namespace: &str, name: &str) -> Option<Pod> {
    let fits = is_label(namespace) && is_name(name);
    fits.then(|| Pod { namespace: namespace.to_owned(), name: name.to_owned(), ..Pod::default() })
}

/// Whether a text can be a namespace's or a container's name.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL_BYTES && !text.contains('.') && is_name(text)
}

/// Whether a text can be a pod's name.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || byte == b'-' || byte == b'.';
    let bytes = text.as_bytes();
    bytes.len() <= MAX_NAME_BYTES
        && bytes.iter().copied().all(inner)
        && bytes.first().copied().is_some_and(plain)
        && bytes.last().copied().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use super::{of_links, of_pods};
    use std::collections::HashSet;

    fn pods(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found = of_pods(&names, &HashSet::from(["5f1c", "0a"]));
        let mut found: Vec<String> = found
            .into_iter()
            .map(|(uid, pod)| match pod {
                Some((_, pod)) => format!("{uid} {} {}", pod.namespace, pod.name),
                None => format!("{uid} ?"),
            })
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_directory_names_the_pod_of_its_uid() {
        let all = ["research_gpt-0_5f1c", "kube-system_etcd-node.1_0a", "other_pod_77", "junk"];
        assert_eq!(pods(&all), ["0a kube-system etcd-node.1", "5f1c research gpt-0"]);
        assert_eq!(pods(&["a_b_5f1c", "c_d_5f1c"]), ["5f1c ?"], "somebody is wrong");
    }

    #[test]
    fn names_that_kubernetes_does_not_allow_are_nobodys() {
        let long = format!("{}_b_5f1c", "a".repeat(64));
        let bad =
            ["_b_5f1c", "A_b_5f1c", "a.b_c_5f1c", "a_-b_5f1c", "a_b\x1b_5f1c", "a_b_c_5f1c", &long];
        for name in bad {
            assert_eq!(pods(&[name]), [""; 0], "{name:?}");
        }
    }

    #[test]
    fn a_link_names_the_container_of_its_id() {
        let names =
            ["gpt-0_research_train-1-abc.log", "gpt-0_research_side.car-abc.log", "abc.log"];
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found = of_links(&names, &HashSet::from(["abc"]));
        let pod = found["abc"].as_ref().unwrap();
        let reports = (pod.namespace.as_str(), pod.name.as_str(), pod.container.as_deref());
        assert_eq!(reports, ("research", "gpt-0", Some("train-1")));
        assert_eq!(found.len(), 1);
    }
}
