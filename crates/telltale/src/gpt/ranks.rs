//! The ranks of a training that runs in several processes: what the environment says of this one's
//! place, and how it comes together with the others.

use std::env::{self, VarError};
use std::num::NonZeroU16;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use telltale_gpt::checkpoint::{Checkpoint, Identity};
use telltale_gpt::parallel::{JoinError, Joined, Master, ParallelRank, Ring};

use super::reporting::Telling;
use crate::exit::Failure;

/// This process's place, before the others are there.
pub(super) struct RankEnvironment {
    member: ParallelRank,
    master: Master,
    reporting: Option<Telling>,
}

/// This process among the others.
pub(super) struct Ranks {
    pub(super) ring: Ring,
    /// Whose checkpoint all go on from, if it had to be passed round.
    pub(super) passed_by: Option<u32>,
    reporting: Option<Telling>,
}

// === impl RankEnvironment ===

impl RankEnvironment {
    /// Reads the variables that torchrun and `telltale agent` set for their workers.
    pub(super) fn from_environment() -> Result<Self, Failure> {
        let rank = needed("RANK")?;
        let world_size = needed("WORLD_SIZE")?;
        // Who sets none starts all ranks once.
        let epoch = variable("TELLTALE_EPOCH")?.unwrap_or(0);
        let member = ParallelRank::new(rank, world_size, epoch)
            .map_err(|error| Failure::Message(format!("RANK and WORLD_SIZE: {error}")))?;
        let master =
            Master { host: needed("MASTER_ADDR")?, port: needed::<NonZeroU16>("MASTER_PORT")? };
        let reporting = Telling::from_environment(member)?;
        Ok(Self { member, master, reporting })
    }

    pub(super) fn rank(&self) -> u32 {
        self.member.rank()
    }

    /// Waits for the others. Gives the checkpoint to go on from, which may be another rank's; nothing
    /// when this process was asked to end meanwhile.
    pub(super) fn join(
        self,
        identity: &Identity,
        held: Option<Checkpoint>,
        stop: Arc<AtomicBool>,
    ) -> Result<Option<(Ranks, Option<Checkpoint>)>, Failure> {
        let Self { member, master, reporting } = self;
        match Ring::join(member, &master, identity, held, stop) {
            Ok(Joined { mut ring, checkpoint, passed_by }) => {
                if let Some(reporting) = &reporting {
                    ring.observe(reporting.observer());
                }
                Ok(Some((Ranks { ring, passed_by, reporting }, checkpoint)))
            }
            Err(JoinError::Stopped) => Ok(None),
            Err(error) => Err(Failure::because(&error)),
        }
    }
}

// === impl Ranks ===

impl Ranks {
    /// Where this process is among the others, to be added to a line.
    pub(super) fn in_words(&self) -> String {
        let member = self.ring.member();
        let (rank, ranks, epoch) = (member.rank(), member.world_size(), member.epoch());
        let passed = self.passed_by.map(|giver| format!(", with the checkpoint of rank {giver}"));
        format!(", rank {rank} of {ranks} in epoch {epoch}{}", passed.unwrap_or_default())
    }

    /// Does something that takes its time and is no fault, as keeping a checkpoint is.
    pub(super) fn excused<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(reporting) = &self.reporting {
            reporting.report_checkpoint(false);
        }
        let done = work();
        if let Some(reporting) = &self.reporting {
            reporting.report_checkpoint(true);
        }
        done
    }
}

fn needed<T: FromStr>(name: &str) -> Result<T, Failure> {
    variable(name)?.ok_or_else(|| {
        Failure::Message(format!(
            "{name} is not set; --parallel is for processes that `telltale agent` or torchrun starts, \
             which set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
        ))
    })
}

fn variable<T: FromStr>(name: &str) -> Result<Option<T>, Failure> {
    let text = match env::var(name) {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(None),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
    };
    let wrong =
        || Failure::Message(format!("{name} is {text:?}, which it cannot be; correct or unset it"));
    text.parse().map(Some).map_err(|_| wrong())
}
