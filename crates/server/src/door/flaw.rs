//! Why callers would refuse a server's certificate, known before one of them does.

use std::fmt;

use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};

/// Names that a certificate for this machine alone may have, besides those of DNS that it lists.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// It is one that signs others.
    Authority,
    /// It says that it is for something else.
    Purpose,
    /// It lacks a name that the one in use has.
    OtherName(String),
}

// === impl Flaw ===

impl Flaw {
    /// What is wrong with the first of these now.
    pub(super) fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (first, rest) = chain.split_first()?;
        let parsed = ParsedCertificate::try_from(first).ok()?;
        // Without an authority to descend from none is believed; what is wrong with the certificate itself is said first.
        let believed = verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &RootCertStore::empty(),
            rest,
            UnixTime::now(),
            ring::default_provider().signature_verification_algorithms.all,
        );
        match believed {
            Err(Error::InvalidCertificate(why)) => Self::from_error(&why),
            _ => None,
        }
    }

    fn from_error(why: &CertificateError) -> Option<Self> {
        match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some(Self::Expired)
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Some(Self::NotYetValid)
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                Some(Self::Purpose)
            }
            CertificateError::Other(other)
                if other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
            {
                Some(Self::Authority)
            }
            _ => None,
        }
    }

    /// What is wrong with taking `new` over `held`: it has none of the names by which callers know this server.
    pub(super) fn of_change(
        held: &[CertificateDer<'_>],
        new: &[CertificateDer<'_>],
    ) -> Option<Self> {
        let first = webpki::EndEntityCert::try_from(held.first()?).ok()?;
        let names = first.valid_dns_names().chain(LOOPBACK).filter(|name| is_for(held, name));
        let names: Vec<&str> = names.collect();
        let lost = names.iter().all(|name| !is_for(new, name));
        lost.then(|| names.first().map(|name| Self::OtherName((*name).to_owned()))).flatten()
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => to.write_str("has expired, so callers refuse it; renew it"),
            Self::NotYetValid => to.write_str(
                "is not valid yet, so callers refuse it; look at its dates and the clock",
            ),
            Self::Authority => {
                to.write_str("is an authority's, which signs others; name one that it has signed")
            }
            Self::Purpose => {
                to.write_str("is not for servers; make one whose extended key usage has serverAuth")
            }
            Self::OtherName(name) => write!(
                to,
                "is not for {name}, as the one in use is; to change the name, start again"
            ),
        }
    }
}

/// Whether the first of these is for a server of this name.
pub(super) fn is_for(chain: &[CertificateDer<'_>], host: &str) -> bool {
    let (Some(first), Ok(name)) = (chain.first(), ServerName::try_from(host)) else {
        return false;
    };
    ParsedCertificate::try_from(first)
        .is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

#[cfg(test)]
mod tests {
    use telltale_harness::Scratch;
    use telltale_harness::authority::{Authority, Purpose, Signed, Wish};

    use super::Flaw;
    use crate::door::{Tls, TlsError, TlsFiles};

    const DAY: i64 = 86_400;

    fn files(place: &Scratch, name: &str, signed: &Signed) -> TlsFiles {
        let [certificate, key] = signed.write(place.path(), name);
        TlsFiles { certificate, key, client_authority: None }
    }

    fn flaw(outcome: Result<impl Sized, TlsError>) -> Option<Flaw> {
        match outcome {
            Ok(_) => None,
            Err(TlsError::Flawed { flaw, .. }) => Some(flaw),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_callers_would_refuse_is_not_taken_over_what_they_accept() {
        let (place, authority) = (Scratch::new(), Authority::new("one"));
        let held = files(&place, "held", &authority.server());
        held.clone().check().unwrap();
        let tls = Tls::new(Some(held.clone())).unwrap();
        let signed = |wish: Wish<'_>| authority.sign(&wish);
        let other = signed(Wish { names: &["elsewhere.lab"], ..Wish::default() });
        let cases = [
            ("expired", signed(Wish { valid: -9 * DAY..-DAY, ..Wish::default() }), Flaw::Expired),
            ("early", signed(Wish { valid: DAY..9 * DAY, ..Wish::default() }), Flaw::NotYetValid),
            ("client", authority.client(), Flaw::Purpose),
            ("authority", authority.own(), Flaw::Authority),
        ];
        for (name, signed, expected) in cases {
            let files = files(&place, name, &signed);
            assert_eq!(flaw(files.clone().check()), Some(expected.clone()), "{name}");
            files.clone().usable().unwrap();
            assert_eq!(flaw(tls.replace(Some(files.clone()))), Some(expected), "{name}");
            // A service that begins with it has the rest of its work to do.
            Tls::new(Some(files)).unwrap();
        }
        let other = files(&place, "other", &other);
        assert_eq!(flaw(other.clone().check()), None);
        let lost = Flaw::OtherName(String::from("localhost"));
        assert_eq!(flaw(tls.replace(Some(other))), Some(lost));
        assert!(tls.has_name("localhost"), "the one from before is held");
        assert_eq!(tls.replace(Some(held)).ok(), Some(false));
        let renewed =
            Wish { purpose: Purpose::Server, names: &["more.lab", "localhost"], ..Wish::default() };
        let renewed = files(&place, "renewed", &authority.sign(&renewed));
        assert_eq!(tls.replace(Some(renewed)).ok(), Some(true));
    }

    #[test]
    fn names_that_make_no_pair_are_refused() {
        let path = std::path::Path::new("x.pem");
        let half = |certificate, key, authority| TlsFiles::named(certificate, key, authority);
        assert!(matches!(half(None, None, None), Ok(None)));
        assert!(matches!(half(Some(path), Some(path), None), Ok(Some(_))));
        for wrong in [
            half(Some(path), None, None),
            half(None, Some(path), None),
            half(None, None, Some(path)),
        ] {
            assert!(matches!(wrong, Err(TlsError::Half)), "{wrong:?}");
        }
    }
}
