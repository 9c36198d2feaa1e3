//! An operator at the end of a call: asks the leader, and orders.
//!
//! It knows several addresses, tries them in turn, and follows a coordinator that names another. An
//! order is sent again only where it certainly was not taken: by one who does not lead.

use std::time::Duration;

use telltale_wire::cluster::{CallError, Client};
use thiserror::Error;

use crate::reach::{CoordinatorAddress, Credentials, ReachError, ReachTrouble, reach};

/// How often one question may be passed on from one coordinator to another.
pub const MAX_REFERRALS: usize = 4;

/// Whom to ask, and by what right.
#[derive(Debug, Clone)]
pub struct Operator {
    addresses: Vec<CoordinatorAddress>,
    credentials: Credentials,
    timeout: Duration,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum OperatorError {
    /// No address was given.
    #[error("no coordinator's address is known; name one")]
    NoAddress,
    /// None was reached; this is what became of the last one.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// None of them leads now.
    #[error("no coordinator leads; {address} says: {said}")]
    NoLeader {
        /// The last one that was asked.
        address: CoordinatorAddress,
        /// What it says of that.
        said: String,
    },
    /// The way to the one that leads broke while it had the call, which it may have carried out.
    #[error(transparent)]
    Broken(ReachTrouble),
    /// The one that leads refused, or what it said cannot be used.
    #[error(transparent)]
    Call(CallError),
    /// It took too long.
    #[error("{address} did not answer within {} s", .timeout.as_secs_f64())]
    Late {
        /// Where.
        address: CoordinatorAddress,
        /// How long it had.
        timeout: Duration,
    },
}

impl Operator {
    /// An operator who asks at these addresses, for `timeout` each.
    #[must_use]
    pub const fn new(
        addresses: Vec<CoordinatorAddress>,
        credentials: Credentials,
        timeout: Duration,
    ) -> Self {
        Self { addresses, credentials, timeout }
    }

    /// Makes a call to the leader.
    ///
    /// # Errors
    /// When no coordinator is reached or leads, or the leader refuses.
    pub async fn ask<Answer>(
        &self,
        mut call: impl AsyncFnMut(&mut Client) -> Result<Answer, CallError>,
    ) -> Result<Answer, OperatorError> {
        let mut outcome = Err(OperatorError::NoAddress);
        for address in &self.addresses {
            outcome = self.ask_from(address.clone(), &mut call).await;
            match &outcome {
                Err(OperatorError::Reach(_) | OperatorError::NoLeader { .. }) => {}
                _ => return outcome,
            }
        }
        outcome
    }

    /// Asks at one address, and at those that it refers to.
    async fn ask_from<Answer>(
        &self,
        mut address: CoordinatorAddress,
        call: &mut impl AsyncFnMut(&mut Client) -> Result<Answer, CallError>,
    ) -> Result<Answer, OperatorError> {
        let timeout = self.timeout;
        let mut last = (address.clone(), String::new());
        for _ in 0..=MAX_REFERRALS {
            let mut client = reach(&address, &self.credentials, timeout).await?;
            // One that stands still takes connections and never answers. It is asked something
            // first that may be asked twice, so that the next one can be tried without an order
            // being given to both.
            let silent = |_| ReachError::Late { address: address.clone(), timeout };
            let found = tokio::time::timeout(timeout, client.status()).await.map_err(silent)?;
            let (leader, said) = match found {
                Ok(_) => {
                    let late = |_| OperatorError::Late { address: address.clone(), timeout };
                    let outcome = tokio::time::timeout(timeout, call(&mut client)).await;
                    match outcome.map_err(late)? {
                        Err(CallError::NotLeader { leader, said }) => (leader, said),
                        other => {
                            return other.map_err(|error| match self.trouble(&address, &error) {
                                Some(trouble) => OperatorError::Broken(trouble),
                                None => OperatorError::Call(error),
                            });
                        }
                    }
                }
                Err(CallError::NotLeader { leader, said }) => (leader, said),
                Err(other) => {
                    return Err(match self.trouble(&address, &other) {
                        Some(trouble) => OperatorError::Reach(trouble.into()),
                        None => OperatorError::Call(other),
                    });
                }
            };
            match leader.and_then(|leader| leader.parse().ok()).filter(|leader| *leader != address)
            {
                Some(leader) => last = (std::mem::replace(&mut address, leader), said),
                None => return Err(OperatorError::NoLeader { address, said }),
            }
        }
        let (address, said) = last;
        Err(OperatorError::NoLeader { address, said })
    }

    fn trouble(&self, address: &CoordinatorAddress, error: &CallError) -> Option<ReachTrouble> {
        ReachTrouble::of_call(address, &self.credentials, error)
    }
}
