//! An etcd that asks its clients for a certificate.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use telltale_cluster::epoch::Revision;
use telltale_cluster::store::{EtcdPlan, EtcdSettings, EtcdTls, LEAST_LEASE, Place};
use telltale_harness::{EtcdCluster, EtcdTlsFiles, Scratch, needs_etcd};
use tokio::time::Instant;

use crate::coordinator::{Coordinator, revision};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Who signs.
fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for the loopback and its key, valid until the end of that year.
fn signed(by: &Authority, last_year: i32) -> (String, String) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(last_year, 12, 31);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn place(members: &[String], authority: &Authority, identity: Option<(String, String)>) -> Place {
    let identity = identity.map(|(certificate, key)| (certificate.into(), key.into()));
    let plan = EtcdPlan {
        members: members.to_vec(),
        prefix: "/telltale/job".into(),
        address: "one:4320".into(),
        lease: LEAST_LEASE,
        tls: Some(EtcdTls { authorities: authority.pem().into(), identity }),
    };
    Place::Etcd(EtcdSettings::new(&plan).unwrap())
}

#[test]
fn whoever_has_a_certificate_leads_and_nobody_else() {
    let test = "store::secure::whoever_has_a_certificate_leads_and_nobody_else";
    if !needs_etcd(test) {
        return;
    }
    let (ours, strange) = (authority(), authority());
    let scratch = Scratch::new();
    let write = |name: &str, text: &str| {
        std::fs::write(scratch.join(name), text).unwrap();
        scratch.join(name)
    };
    let (certificate, key) = signed(&ours, 2100);
    let (certificate, key) = (write("member.pem", &certificate), write("member.key", &key));
    let authority = write("authority.pem", &ours.pem());
    let files = EtcdTlsFiles { certificate: &certificate, key: &key, authority: &authority };
    let cluster = EtcdCluster::start_secure(1, files);
    let members = cluster.addresses();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let refused = [
            ("no certificate", place(&members, &ours, None)),
            ("a stranger's", place(&members, &ours, Some(signed(&strange, 2100)))),
            ("one that has expired", place(&members, &ours, Some(signed(&ours, 2021)))),
            ("members of a stranger", place(&members, &strange, Some(signed(&ours, 2100)))),
        ];
        for (case, place) in refused {
            let mut coordinator = Coordinator::start(&place);
            let soon = Instant::now() + Duration::from_secs(1);
            assert!(coordinator.event_until(soon).await.is_none(), "{case}");
            assert_eq!(coordinator.troubles.len(), 1, "{case}: {:?}", coordinator.troubles);
        }
        let mut leader = Coordinator::start(&place(&members, &ours, Some(signed(&ours, 2100))));
        let term = leader.gains().await.term;
        let decision = leader.decides(term, Revision::EMPTY, 1);
        revision(leader.stores(&decision).await);
    });
}
