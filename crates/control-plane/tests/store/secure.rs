//! An etcd that asks its clients for a certificate.

use std::time::Duration;

use telltale_cluster::epoch::Revision;
use telltale_control_plane::store::{EtcdPlan, EtcdSettings, EtcdTls, LEAST_LEASE, StoreLocation};
use telltale_harness::authority::{Authority, Signed, Wish};
use telltale_harness::{EtcdCluster, EtcdTlsFiles, Scratch, needs_etcd};
use tokio::time::Instant;

use crate::store::coordinator::{Coordinator, revision};

/// A certificate for the loopback and its key, valid now or in the past alone.
fn signed(by: &Authority, is_over: bool) -> Signed {
    let now = Wish { names: &["127.0.0.1"], ..Wish::default() };
    match is_over {
        true => by.sign(&Wish { valid: -172_800..-86_400, ..now }),
        false => by.sign(&now),
    }
}

fn place(members: &[String], authority: &Authority, identity: Option<Signed>) -> StoreLocation {
    let identity = identity.map(|own| (own.certificate.into(), own.key.into()));
    let plan = EtcdPlan {
        members: members.to_vec(),
        prefix: "/telltale/job".into(),
        address: "one:4320".into(),
        lease: LEAST_LEASE,
        tls: Some(EtcdTls { authorities: authority.pem().into(), identity }),
    };
    StoreLocation::Etcd(EtcdSettings::new(&plan).unwrap())
}

#[test]
fn who_has_a_certificate_leads_and_nobody_else() {
    let test = "store::secure::who_has_a_certificate_leads_and_nobody_else";
    if !needs_etcd(test) {
        return;
    }
    let (ours, strange) = (Authority::new("one"), Authority::new("one"));
    let scratch = Scratch::new();
    let write = |name: &str, text: &str| {
        std::fs::write(scratch.join(name), text).unwrap();
        scratch.join(name)
    };
    let Signed { certificate, key } = signed(&ours, false);
    let (certificate, key) = (write("member.pem", &certificate), write("member.key", &key));
    let authority = write("authority.pem", &ours.pem());
    let files = EtcdTlsFiles { certificate: &certificate, key: &key, authority: &authority };
    let cluster = EtcdCluster::start_secure(1, files);
    let members = cluster.addresses();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let refused = [
            ("no certificate", place(&members, &ours, None)),
            ("a stranger's", place(&members, &ours, Some(signed(&strange, false)))),
            ("one that has expired", place(&members, &ours, Some(signed(&ours, true)))),
            ("members of a stranger", place(&members, &strange, Some(signed(&ours, false)))),
        ];
        for (case, place) in refused {
            let mut coordinator = Coordinator::start(&place);
            let soon = Instant::now() + Duration::from_secs(1);
            assert!(coordinator.event_until(soon).await.is_none(), "{case}");
            assert_eq!(coordinator.troubles.len(), 1, "{case}: {:?}", coordinator.troubles);
        }
        let mut leader = Coordinator::start(&place(&members, &ours, Some(signed(&ours, false))));
        let term = leader.gains().await.term;
        let decision = leader.decides(term, Revision::EMPTY, 1);
        revision(leader.stores(&decision).await);
    });
}
