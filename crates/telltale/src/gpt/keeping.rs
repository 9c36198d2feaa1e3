//! When a training's checkpoint is read and written. A checkpoint that cannot be written is reported
//! once, and the training goes on.

use telltale_gpt::Training;
use telltale_gpt::checkpoint::{Checkpoint, CheckpointDirectory, Identity};

use crate::arguments::GptArguments;
use crate::exit::{self, Failure};

/// Keeps the checkpoint of a training, if that is wanted.
pub(super) struct Keeper {
    directory: Option<CheckpointDirectory>,
    every_steps: u64,
    /// What was found, until it is taken.
    found: Option<Checkpoint>,
    /// The steps of the checkpoint that is on the disk.
    kept_steps: Option<u64>,
    /// The last attempt to write failed, and that was reported.
    failed: bool,
}

impl Keeper {
    /// Opens the directory, and reads the checkpoint in it if there is one.
    pub(super) fn open(
        arguments: &GptArguments,
        identity: &Identity,
        rank: Option<u32>,
    ) -> Result<Self, Failure> {
        let mut keeper = Self {
            directory: None,
            every_steps: arguments.checkpoint_every,
            found: None,
            kept_steps: None,
            failed: false,
        };
        let Some(path) = &arguments.checkpoint else { return Ok(keeper) };
        // Each rank has its own: only one of them can write to a directory.
        let path = rank.map_or_else(|| path.clone(), |rank| path.join(format!("rank-{rank}")));
        let directory =
            CheckpointDirectory::open(&path).map_err(|error| Failure::because(&error))?;
        let file = directory.file();
        if arguments.resume {
            keeper.found = directory.load(identity).map_err(|error| Failure::because(&error))?;
            keeper.kept_steps = keeper.found.as_ref().map(|checkpoint| checkpoint.steps);
        } else if file.exists() {
            return Err(Failure::Message(format!(
                "{} is there already, from another training or an earlier part of this one; go on \
                 from it with --resume, or choose another directory",
                file.display()
            )));
        }
        keeper.directory = Some(directory);
        Ok(keeper)
    }

    /// The checkpoint that was found.
    pub(super) fn take_checkpoint(&mut self) -> Option<Checkpoint> {
        self.found.take()
    }

    /// Whether a checkpoint is due after this step.
    pub(super) fn is_due(&self, training: &Training) -> bool {
        self.directory.is_some() && training.steps().is_multiple_of(self.every_steps)
    }

    /// Writes the checkpoint, unless the one on the disk is of this very step.
    pub(super) fn keep(&mut self, training: &Training) -> Result<(), Failure> {
        let Some(directory) = &self.directory else { return Ok(()) };
        if self.kept_steps == Some(training.steps()) {
            return Ok(());
        }
        let checkpoint = training.checkpoint().map_err(|error| Failure::because(&error))?;
        match directory.store(&checkpoint) {
            Ok(()) => {
                if self.failed {
                    exit::tell("telltale: checkpoints are written again");
                }
                self.failed = false;
                self.kept_steps = Some(checkpoint.steps);
            }
            Err(error) => {
                if !self.failed {
                    let text = telltale_schema::text::with_causes(&error);
                    exit::tell(&format!("telltale: {text}; the training goes on"));
                }
                self.failed = true;
            }
        }
        Ok(())
    }

    /// Whether the last attempt to write failed.
    pub(super) fn failed(&self) -> bool {
        self.failed
    }
}
