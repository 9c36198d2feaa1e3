//! The agent's way to the leader: tries addresses in turn, follows a coordinator that names another,
//! and reconnects when it is lost. What is reported while there is no way is lost, as the agent's machine
//! expects.

use std::collections::BTreeMap;
use std::time::Duration;
use tracing::{error, info, warn};

use telltale_schema::text::with_causes;
use telltale_wire::cluster::message::NodeMessage;
use telltale_wire::cluster::{CallError, Orders};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::operator::MAX_REFERRALS;
use crate::protocol::ProtocolError;
use crate::protocol::decode::{DecodedOrder, coordinator_message};
use crate::random;
use crate::reach::{CoordinatorAddress, Credentials, Keyring, ReachError, ReachTrouble, reach};
use telltale_cluster::message::ToNode;
use telltale_cluster::node::NodeName;

/// Messages that may wait to be sent.
const MAX_WAITING_MESSAGES: usize = 64;
/// Events that may wait for the agent.
const MAX_WAITING_EVENTS: usize = 64;
/// How long a coordinator may take to answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Addresses of which it is known what was reported last.
const MAX_REPORTED_ADDRESSES: usize = 64;
/// The rest after the first attempt at all addresses, and the longest.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// What the way to a coordinator brings.
#[derive(Debug)]
pub(super) enum Brought {
    /// There is a way, and messages go in here.
    Connected(mpsc::Sender<NodeMessage>),
    /// There is none any more.
    Disconnected,
    /// An order.
    Order(ToNode),
}

/// Whom to reach, and as whom.
#[derive(Debug, Clone)]
pub(super) struct CoordinatorTarget {
    pub(super) node: NodeName,
    pub(super) addresses: Vec<CoordinatorAddress>,
    pub(super) keyring: Keyring,
}

/// Why there is no way, or none any more.
#[derive(Debug, Error)]
enum Lost {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{address} did not take the stream within {} s", TIMEOUT.as_secs())]
    Late { address: CoordinatorAddress },
    #[error("{address} sent what cannot be")]
    Protocol {
        address: CoordinatorAddress,
        #[source]
        source: ProtocolError,
    },
    #[error("{address} has ended the stream")]
    Ended { address: CoordinatorAddress },
    #[error(
        "{address} rejects this agent, for the reason logged above; the other addresses are tried"
    )]
    Refused { address: CoordinatorAddress },
    #[error("lost the coordinator at {address}; workers go on, and it is tried again")]
    Gone { address: CoordinatorAddress },
}

/// Keeps up a way for ever. To be started as a task of its own.
pub(super) fn keep(target: CoordinatorTarget) -> mpsc::Receiver<Brought> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
    let (reported, refused) = (Refrain::default(), Refrain::default());
    tokio::spawn(async move { Keeping { target, sender, reported, refused }.run().await });
    receiver
}

impl Lost {
    /// What a call's error means: that there is no way, or what the coordinator said.
    fn by(address: &CoordinatorAddress, credentials: &Credentials, error: CallError) -> Self {
        match ReachTrouble::of_call(address, credentials, &error) {
            Some(trouble) => Self::Reach(trouble.into()),
            None => Self::Call(error),
        }
    }
}

struct Keeping {
    target: CoordinatorTarget,
    sender: mpsc::Sender<Brought>,
    /// Why there is no way.
    reported: Refrain,
    /// Why messages were not taken.
    refused: Refrain,
}

/// What was last reported of each address, so as not to repeat it each second, or with each connection.
#[derive(Debug, Default)]
struct Refrain(BTreeMap<String, String>);

impl Keeping {
    async fn run(mut self) {
        let mut rest = FIRST_REST;
        while !self.sender.is_closed() {
            for address in self.target.addresses.clone() {
                if self.attend_from(address).await {
                    rest = FIRST_REST;
                }
            }
            tokio::time::sleep(scattered(rest)).await;
            rest = (rest * 2).min(LONGEST_REST);
        }
    }

    /// Attends at one address, or at those that it refers to, until the way is lost. Says whether
    /// there was one: a coordinator that does not lead takes the stream, and then refuses.
    async fn attend_from(&mut self, mut address: CoordinatorAddress) -> bool {
        for _ in 0..=MAX_REFERRALS {
            let (lost, was_heard) = match self.begin(&address).await {
                Ok(orders) => self.hear(&address, orders).await,
                Err(lost) => (lost, false),
            };
            let leader = match &lost {
                Lost::Call(CallError::NotLeader { leader, .. }) => leader.clone(),
                _ => None,
            };
            if let Some(text) = self.reported.news(&address, with_causes(&lost)) {
                warn!("{text}");
            }
            match leader.and_then(|leader| leader.parse().ok()).filter(|leader| *leader != address)
            {
                Some(leader) if !was_heard => address = leader,
                _ => return was_heard,
            }
        }
        false
    }

    async fn begin(&mut self, address: &CoordinatorAddress) -> Result<Orders, Lost> {
        let credentials = self.target.keyring.now();
        let mut client = reach(address, &credentials, TIMEOUT).await?;
        let (sender, messages) = mpsc::channel(MAX_WAITING_MESSAGES);
        let attended = client.attend(ReceiverStream::new(messages));
        let late = |_| Lost::Late { address: address.clone() };
        let orders = tokio::time::timeout(TIMEOUT, attended).await.map_err(late)?;
        let orders = orders.map_err(|error| Lost::by(address, &credentials, error))?;
        // The agent is gone when the receiver is, and `run` looks.
        let _ = self.sender.send(Brought::Connected(sender)).await;
        Ok(orders)
    }

    /// Passes on orders until the connection is lost. Returns whether any came: a node that is only refused, for
    /// another job say, reconnects repeatedly.
    async fn hear(&mut self, address: &CoordinatorAddress, mut orders: Orders) -> (Lost, bool) {
        let mut was_heard = false;
        let lost = loop {
            let message = match orders.next().await {
                Ok(Some(message)) => message,
                Ok(None) if was_heard => break Lost::Gone { address: address.clone() },
                Ok(None) => break Lost::Ended { address: address.clone() },
                Err(error) => {
                    let lost = Lost::by(address, &self.target.keyring.now(), error);
                    break match lost {
                        Lost::Reach(_) if was_heard => Lost::Gone { address: address.clone() },
                        other => other,
                    };
                }
            };
            match coordinator_message(message) {
                Ok(DecodedOrder::Order { node, message }) if node == self.target.node => {
                    if !was_heard {
                        was_heard = true;
                        info!(address = %address, "connected to the coordinator at {address}");
                        self.reported.forget();
                        self.refused.forget();
                    }
                    if self.sender.send(Brought::Order(message)).await.is_err() {
                        break Lost::Ended { address: address.clone() };
                    }
                }
                // This stream carries one node only.
                Ok(DecodedOrder::Order { .. }) => {}
                Ok(DecodedOrder::Refused { reason, .. }) => {
                    // Who is refused registers again each second.
                    let text = format!("the coordinator refused a message: {reason}");
                    if let Some(text) = self.refused.news(address, text) {
                        // The node does nothing until someone acts.
                        error!("{text}");
                    }
                    if !was_heard && self.target.addresses.len() > 1 {
                        break Lost::Refused { address: address.clone() };
                    }
                }
                Err(source) => break Lost::Protocol { address: address.clone(), source },
            }
        };
        let _ = self.sender.send(Brought::Disconnected).await;
        (lost, was_heard)
    }
}

// === impl Refrain ===

impl Refrain {
    /// What to report of `address`, unless it was its last report.
    fn news(&mut self, address: &CoordinatorAddress, text: String) -> Option<String> {
        let address = address.to_string();
        if self.0.get(&address) == Some(&text) {
            return None;
        }
        // Coordinators may refer to any address.
        if self.0.len() == MAX_REPORTED_ADDRESSES && !self.0.contains_key(&address) {
            self.0.clear();
        }
        self.0.insert(address, text.clone());
        Some(text)
    }

    fn forget(&mut self) {
        self.0.clear();
    }
}

/// A time around `rest`, so that agents that lose one coordinator together do not come back together.
fn scattered(rest: Duration) -> Duration {
    let share = u32::try_from(random::draw() % 1000).unwrap_or(0);
    rest / 2 + rest * share / 1000
}

#[cfg(test)]
mod tests;
