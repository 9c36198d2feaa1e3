//! What the kernel shows as the machine's mains, from `/sys/class/power_supply` (the kernel's
//! `Documentation/ABI/testing/sysfs-class-power`).

use telltale_schema::clock::Timestamp;

use super::HostPartKind;
use super::entry::{Answer, Found, cleaned};
use super::value::{PartFiles, truth};
use crate::tree::{Directory, Unreadable};

/// The supply of this name, where it is mains: batteries and ports that charge are none.
pub(super) fn survey(directory: &Directory, name: &str) -> Result<Vec<Found>, Unreadable> {
    let kind = directory.attribute("type")?;
    let mains = kind.trim_ascii() == b"Mains";
    Ok(mains
        .then(|| Found {
            kind: HostPartKind::PowerSupply,
            item: 1,
            owner: cleaned(name),
            place: None,
            channel: None,
            gids: None,
            names: &["online"],
            read,
        })
        .into_iter()
        .collect())
}

fn read(directory: &Directory, _: &Found, now: Timestamp) -> Answer {
    let files = PartFiles { directory, now };
    [("online", files.parsed("online", truth))].into()
}
