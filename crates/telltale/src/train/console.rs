//! What of the workers' output appears, and what is kept: torchrun's `--redirects`, `--tee`, `--local-ranks-filter` and
//! `TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE`.

use std::path::PathBuf;

use telltale_cluster::rank::WorkersPerNode;
use telltale_control_plane::supervisor::{Echo, LinePrefix, StreamEcho, WorkerEcho};

use crate::arguments::TrainArguments;
use crate::exit::Failure;

/// The variable that has the prefix of lines, where another than this is wanted.
const PREFIX_VARIABLE: &str = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
const PREFIX: &str = "[${role_name}${local_rank}]:";

/// Where the output of workers goes.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) echo: Echo,
    pub(super) log_dir: Option<PathBuf>,
}

/// Which streams an option names, of each local rank: standard output is 1, standard error 2.
#[derive(Debug, PartialEq, Eq)]
enum Streams {
    All(u8),
    Ranks(Vec<(u32, u8)>),
}

// === impl Outputs ===

impl Outputs {
    pub(super) fn of(arguments: &TrainArguments, workers: WorkersPerNode) -> Result<Self, Failure> {
        let redirects = Streams::read("--redirects", &arguments.redirects)?;
        let tee = Streams::read("--tee", &arguments.tee)?;
        let shown = shown_ranks(&arguments.local_ranks_filter)?;
        let ranks = 0..workers.get();
        if shown.as_ref().is_some_and(|shown| !shown.iter().any(|rank| ranks.contains(rank))) {
            return Err(Failure::Usage(format!(
                "--local-ranks-filter {} shows none of the workers; their local ranks are 0 to {}",
                arguments.local_ranks_filter,
                ranks.end - 1
            )));
        }
        if arguments.log_dir.is_none() && ranks.clone().any(|rank| redirects.of(rank) > 0) {
            return Err(Failure::Usage(String::from(
                "--redirects takes output off the terminal, and there is no place for it; write \
                 `--log-dir DIR` too",
            )));
        }
        let template = std::env::var(PREFIX_VARIABLE).ok().filter(|template| !template.is_empty());
        let template = template.as_deref().unwrap_or(PREFIX);
        let echo = |rank: u32, stream: u8| {
            if shown.as_ref().is_some_and(|shown| !shown.contains(&rank)) {
                StreamEcho::Hidden
            } else if tee.of(rank) & stream > 0 {
                StreamEcho::Behind(LinePrefix::from_template(template, &arguments.role, rank))
            } else if redirects.of(rank) & stream > 0 {
                StreamEcho::Hidden
            } else {
                StreamEcho::Plain
            }
        };
        let workers = ranks.map(|rank| WorkerEcho { output: echo(rank, 1), error: echo(rank, 2) });
        Ok(Self { echo: Echo::Workers(workers.collect()), log_dir: arguments.log_dir.clone() })
    }
}

// === impl Streams ===

impl Streams {
    fn read(option: &str, text: &str) -> Result<Self, Failure> {
        let number = |text: &str| text.parse::<u8>().ok().filter(|number| *number <= 3);
        let of_rank = |text: &str| {
            let (rank, streams) = text.split_once(':')?;
            Some((rank.parse().ok()?, number(streams)?))
        };
        let read = match number(text) {
            Some(streams) => Some(Self::All(streams)),
            None => text.split(',').map(of_rank).collect::<Option<_>>().map(Self::Ranks),
        };
        read.ok_or_else(|| {
            Failure::Usage(format!(
                "{option} {text}: write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or one for each \
                 local rank: 0:3,1:2"
            ))
        })
    }

    fn of(&self, rank: u32) -> u8 {
        match self {
            Self::All(streams) => *streams,
            Self::Ranks(ranks) => {
                ranks.iter().find(|(one, _)| *one == rank).map_or(0, |(_, streams)| *streams)
            }
        }
    }
}

/// The local ranks that a filter names; nothing without a filter.
fn shown_ranks(filter: &str) -> Result<Option<Vec<u32>>, Failure> {
    if filter.is_empty() {
        return Ok(None);
    }
    let ranks = filter.split(',').map(|rank| rank.trim().parse().ok()).collect::<Option<_>>();
    ranks.map(Some).ok_or_else(|| {
        Failure::Usage(format!(
            "--local-ranks-filter {filter}: write local ranks with commas between them: 0,1"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_as_torchrun_reads_them() {
        let check = |text: &str| Streams::read("--tee", text).ok();
        assert_eq!(check("3"), Some(Streams::All(3)));
        assert_eq!(check("0:3,12:1"), Some(Streams::Ranks(vec![(0, 3), (12, 1)])));
        for wrong in ["", "4", "0:4", "a:1", "0:1,", "0-1"] {
            assert_eq!(check(wrong), None, "{wrong:?}");
        }
        let streams = check("0:3,2:1").unwrap();
        assert_eq!([0, 1, 2].map(|rank| streams.of(rank)), [3, 0, 1]);
    }

    #[test]
    fn a_filter_names_ranks() {
        assert_eq!(shown_ranks("").unwrap(), None);
        assert_eq!(shown_ranks("0, 2").unwrap(), Some(vec![0, 2]));
        assert!(shown_ranks("rank0").is_err());
    }
}
