//! What the environment says: where the agent is, which events are wanted, who this worker is.

use crate::address::{Address, AddressRefused};
use crate::record::RankIdentity;

/// NCCL's bits of the events that are used (`ncclProfileColl` and so on).
pub(crate) const COLLECTIVES: i32 = 1 << 1;
pub(crate) const TRANSFERS: i32 = 1 << 2;
pub(crate) const OPERATIONS: i32 = 1 << 3;
pub(crate) const STEPS: i32 = 1 << 4;
pub(crate) const KERNELS: i32 = 1 << 6;

/// The agent's address.
pub(crate) const ADDRESS_VARIABLE: &str = "TELLTALE_LOG_CCL";
/// Which events are wanted.
pub(crate) const EVENTS_VARIABLE: &str = "TELLTALE_NCCL_EVENTS";

/// What the environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) address: Result<Address, AddressRefused>,
    /// NCCL's bits of the events that it is to tell.
    pub(crate) mask: i32,
    /// A word of [`EVENTS_VARIABLE`] that names no events.
    pub(crate) misread: Option<String>,
    pub(crate) worker: RankIdentity,
}

impl Settings {
    /// Reads variables with `variable`.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name| variable(name).and_then(|text| text.trim().parse::<u64>().ok());
        let narrow = |name| number(name).and_then(|number| u32::try_from(number).ok());
        let (mask, misread) = mask(&variable(EVENTS_VARIABLE).unwrap_or_default());
        Self {
            address: Address::parse(variable(ADDRESS_VARIABLE).unwrap_or_default().trim()),
            mask,
            misread,
            worker: RankIdentity {
                rank: narrow("RANK"),
                world_size: narrow("WORLD_SIZE"),
                epoch: number("TELLTALE_EPOCH"),
            },
        }
    }
}

/// The events of a list of words; all that are used for an empty one.
fn mask(words: &str) -> (i32, Option<String>) {
    let all = COLLECTIVES | TRANSFERS | OPERATIONS | STEPS | KERNELS;
    let mut mask = 0;
    let words: Vec<&str> =
        words.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    for word in &words {
        mask |= match *word {
            "network" => COLLECTIVES | TRANSFERS | OPERATIONS,
            "steps" => OPERATIONS | STEPS,
            "kernels" => COLLECTIVES | TRANSFERS | KERNELS,
            "all" => all,
            _ => return (all, Some((*word).to_owned())),
        };
    }
    (if words.is_empty() { all } else { mask }, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Settings {
        Settings::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_is_read_and_what_it_does_not_say_has_a_default() {
        let settings = read(&[("RANK", "3"), ("WORLD_SIZE", "x"), ("TELLTALE_EPOCH", "12")]);
        let worker = RankIdentity { rank: Some(3), world_size: None, epoch: Some(12) };
        assert_eq!((settings.worker, settings.mask, settings.misread), (worker, 0x5e, None));
        assert_eq!(settings.address, Address::parse("127.0.0.1:8081"));
        for (words, mask, misread) in [
            ("kernels", 0x46, None),
            (" network , steps,", 0x1e, None),
            ("steps,kernel", 0x5e, Some("kernel")),
        ] {
            let settings = read(&[(EVENTS_VARIABLE, words)]);
            let misread = misread.map(str::to_owned);
            assert_eq!((settings.mask, settings.misread), (mask, misread), "{words}");
        }
    }
}
