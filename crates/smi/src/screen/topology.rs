//! Which devices are together: the chips of a board, the trays of a Galaxy, the partitions of a
//! device. By what their identities say; links that no driver reports are not guessed.

use std::collections::HashMap;
use std::ops::Range;

use telltale_schema::chip::{BoardId, BoardType};
use telltale_schema::device::DeviceIdentity;
use telltale_schema::snapshot::Device;

/// Trays of a Galaxy, and chips in each.
pub(super) const TRAYS: u8 = 4;
pub(super) const CHIPS_OF_A_TRAY: u8 = 8;

/// The places of a Galaxy's chips: by tray and then by place, where one is seen.
pub(super) type Trays = [[Option<usize>; CHIPS_OF_A_TRAY as usize]; TRAYS as usize];

/// Devices that are together, by their places in the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeviceGroup {
    /// The chips of a Galaxy.
    Galaxy {
        board: BoardType,
        trays: Box<Trays>,
        /// Chips whose place another has already.
        others: Vec<usize>,
    },
    /// A board, or a device with its partitions.
    Board(Vec<usize>),
}

/// What devices have in common that are together.
#[derive(Debug, PartialEq, Eq, Hash)]
enum GroupKey<'a> {
    Galaxy(BoardType),
    Board(BoardId),
    Device(&'a str),
    Alone(usize),
}

/// The units of one machine, whose devices are at these places; in the order of their first device.
pub(super) fn units(devices: &[Device], of: Range<usize>) -> Vec<DeviceGroup> {
    let mut places: HashMap<GroupKey<'_>, usize> = HashMap::new();
    let mut units: Vec<DeviceGroup> = Vec::new();
    for at in of {
        let Some(device) = devices.get(at) else { break };
        let key = key(device, at);
        let place = *places.entry(key).or_insert(units.len());
        if place == units.len() {
            units.push(match galaxy(device) {
                Some((board, _)) => {
                    DeviceGroup::Galaxy { board, trays: Box::default(), others: Vec::new() }
                }
                None => DeviceGroup::Board(Vec::new()),
            });
        }
        match (&mut units[place], galaxy(device)) {
            (DeviceGroup::Galaxy { trays, others, .. }, Some((_, [tray, chip]))) => {
                match trays.get_mut(tray).and_then(|tray| tray.get_mut(chip)) {
                    Some(free @ None) => *free = Some(at),
                    _ => others.push(at),
                }
            }
            (DeviceGroup::Galaxy { others, .. }, None) => others.push(at),
            (DeviceGroup::Board(devices), _) => devices.push(at),
        }
    }
    units
}

/// The Galaxy and the place in it of a chip that is in one, both counted from 0.
fn galaxy(device: &Device) -> Option<(BoardType, [usize; 2])> {
    let chip = device.identity.chip()?;
    let position = chip.galaxy?;
    let [tray, nibble] = [position.tray, position.nibble].map(|it| usize::from(it.wrapping_sub(1)));
    Some((chip.board_type, [tray, nibble]))
}

fn key(device: &Device, at: usize) -> GroupKey<'_> {
    match &device.identity {
        DeviceIdentity::Chip(chip) => match (chip.galaxy, chip.board_id) {
            (Some(_), _) => GroupKey::Galaxy(chip.board_type),
            (None, Some(board)) => GroupKey::Board(board),
            (None, None) => GroupKey::Alone(at),
        },
        DeviceIdentity::Other(other) => {
            GroupKey::Device(other.parent.as_deref().unwrap_or(&other.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use telltale_schema::chip::{BoardId, BoardType, ChipIdentity, GalaxyPosition};
    use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
    use telltale_schema::snapshot::Device;

    use super::{DeviceGroup, units};

    fn device(identity: impl Into<DeviceIdentity>) -> Device {
        Device::unread("", identity)
    }

    fn in_galaxy(tray: u8, nibble: u8) -> Device {
        device(ChipIdentity {
            board_type: BoardType::GalaxyWormhole,
            board_id: Some(BoardId(7)),
            galaxy: Some(GalaxyPosition { tray, nibble }),
            ..ChipIdentity::default()
        })
    }

    fn on_board(board_id: Option<u64>) -> Device {
        device(ChipIdentity { board_id: board_id.map(BoardId), ..ChipIdentity::default() })
    }

    fn other(name: &str, parent: Option<&str>) -> Device {
        let other = OtherIdentity::new(name, "nvidia", DeviceClass::Gpu);
        device(OtherIdentity { parent: parent.map(str::to_owned), ..other })
    }

    #[test]
    fn what_has_an_id_in_common_is_together_and_nothing_else() {
        let devices = [
            on_board(Some(1)),
            on_board(None),
            on_board(Some(1)),
            on_board(None),
            other("a", None),
            other("b", None),
            other("a/1", Some("a")),
        ];
        let boards = |units: Vec<DeviceGroup>| -> Vec<Vec<usize>> {
            let board = |unit| match unit {
                DeviceGroup::Board(devices) => devices,
                DeviceGroup::Galaxy { .. } => panic!("there is no Galaxy"),
            };
            units.into_iter().map(board).collect()
        };
        let expected = [vec![0, 2], vec![1], vec![3], vec![4, 6], vec![5]];
        assert_eq!(boards(units(&devices, 0..usize::MAX)), expected);
        // Two machines whose boards have the same number.
        assert_eq!(boards(units(&devices, 2..4)), [vec![2], vec![3]]);
    }

    #[test]
    fn a_place_of_a_galaxy_has_one_chip_whatever_is_reported() {
        let devices =
            [in_galaxy(1, 1), in_galaxy(4, 8), in_galaxy(1, 1), in_galaxy(0, 1), in_galaxy(1, 9)];
        let units = units(&devices, 0..devices.len());
        let [DeviceGroup::Galaxy { trays, others, .. }] = &units[..] else { panic!("{units:?}") };
        assert_eq!((trays[0][0], trays[3][7]), (Some(0), Some(1)));
        assert_eq!(trays.iter().flatten().flatten().count(), 2);
        assert_eq!(others, &[2, 3, 4]);
    }
}
