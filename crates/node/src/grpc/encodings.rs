//! Answers as bytes, made once for each state and visibility: a hundred watchers cost one encoding.

use std::sync::{Arc, Mutex, PoisonError};

use telltale_wire::telemetry::encode;
use tonic::codegen::Bytes;

use crate::access::{AccessPolicy, Visibility};
use crate::service::Published;

/// Users whose bytes of the newest state are kept.
const MOST_KEPT: usize = 16;

/// The newest state's bytes.
#[derive(Debug, Default)]
pub(super) struct Encodings(Mutex<CachedEncoding>);

#[derive(Debug, Default)]
struct CachedEncoding {
    sequence: u64,
    of: Vec<(Visibility, Bytes)>,
}

impl Encodings {
    /// The bytes of what `visibility` covers of a publication.
    pub(super) fn of(
        &self,
        published: &Arc<Published>,
        policy: &AccessPolicy,
        visibility: Visibility,
    ) -> Bytes {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.sequence < published.sequence {
            *kept = CachedEncoding { sequence: published.sequence, of: Vec::new() };
        }
        let is_newest = kept.sequence == published.sequence;
        if is_newest
            && let Some((_, bytes)) = kept.of.iter().find(|(whose, _)| *whose == visibility)
        {
            return bytes.clone();
        }
        let bytes = encode::snapshot(&policy.visible(&published.snapshot, visibility));
        if is_newest && kept.of.len() < MOST_KEPT {
            kept.of.push((visibility, bytes.clone()));
        }
        bytes
    }
}
