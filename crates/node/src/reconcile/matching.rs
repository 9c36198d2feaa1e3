//! Which names mean the same chip.

use telltale_schema::chip::{AsicId, ChipIdentity, composite_id, possible_unique_ids};
use telltale_schema::device::{DeviceClass, DeviceIdentity};

/// Whether a device that a driver shows is the one that a process names. Another vendor's is named
/// by its PCI address; a partition, which has that of its device, by nothing.
pub(super) fn is_named(known: &DeviceIdentity, named: &ChipIdentity) -> bool {
    match known {
        DeviceIdentity::Chip(chip) => same_chip(chip, named),
        DeviceIdentity::Other(other) => {
            let whole = other.class != DeviceClass::Partition;
            whole && !named.remote && named.pci.is_some() && named.pci == other.pci
        }
    }
}

/// Whether a driver's chip and one that a process names are the same.
///
/// The PCI address decides where both have one, unless ASIC ids contradict it (addresses move
/// when a card does). A remote chip has none; it is told by its gateway's ASIC id or by board and
/// location. A board id alone never tells chips apart: all 32 of a Galaxy may share one.
fn same_chip(known: &ChipIdentity, named: &ChipIdentity) -> bool {
    if known.remote != named.remote {
        return false;
    }
    let asic = both(significant(known.asic_id), significant(named.asic_id));
    let board = both(known.board_id, named.board_id);
    if !known.remote
        && let (Some(one), Some(other)) = (known.pci, named.pci)
    {
        return one == other && asic != Some(false);
    }
    match (asic, board) {
        (Some(same), _) if known.remote => same && known.location == named.location,
        (Some(same), _) => same,
        (None, Some(same)) => same && known.location == named.location,
        (None, None) => nameless(known, named),
    }
}

/// Chips with nothing but a driver ordinal.
fn nameless(known: &ChipIdentity, named: &ChipIdentity) -> bool {
    let empty = |chip: &ChipIdentity| {
        chip.pci.is_none() && significant(chip.asic_id).is_none() && chip.board_id.is_none()
    };
    let ordinals = (known.driver_ordinal, named.driver_ordinal);
    match ordinals {
        (Some(one), Some(other)) => one == other && (empty(known) || empty(named)),
        (None, None) => empty(known) && empty(named) && known.location == named.location,
        _ => false,
    }
}

fn both<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<bool> {
    Some(one? == other?)
}

/// Firmware without the id reports 0.
fn significant(asic: Option<AsicId>) -> Option<AsicId> {
    asic.filter(|asic| asic.0 != 0)
}

/// The numbers by which tt-metal may have named this chip's region: the composite of board and
/// location in version 1, UMD's chip id later.
pub(super) fn region_of(chip: &ChipIdentity) -> impl Iterator<Item = u64> + use<> {
    let board = chip.board_id.filter(|board| board.0 != 0);
    let composite = board.map(|board| composite_id(board, chip.location).value);
    composite.into_iter().chain(possible_unique_ids(chip))
}

#[cfg(test)]
mod tests {
    use super::{region_of, same_chip};
    use telltale_schema::chip::{AsicId, BoardId, BoardType, ChipIdentity};

    fn n300() -> ChipIdentity {
        ChipIdentity {
            driver_ordinal: Some(0),
            pci: Some("0000:03:00.0".parse().unwrap()),
            asic_id: Some(AsicId(0x2_5173_2099)),
            board_id: Some(BoardId(0x0100_0146_1190_302b)),
            board_type: BoardType::N300,
            ..ChipIdentity::default()
        }
    }

    #[test]
    fn a_chip_is_known_by_any_name_that_tells_it_apart() {
        let known = n300();
        let none = ChipIdentity::default();
        let cases = [
            (n300(), true),
            (ChipIdentity { pci: known.pci, ..none.clone() }, true),
            (ChipIdentity { asic_id: known.asic_id, ..none.clone() }, true),
            (ChipIdentity { board_id: known.board_id, ..none.clone() }, true),
            (ChipIdentity { board_id: known.board_id, location: 1, ..none.clone() }, false),
            (ChipIdentity { remote: true, location: 1, ..n300() }, false),
            (ChipIdentity { pci: Some("0000:04:00.0".parse().unwrap()), ..n300() }, false),
            (ChipIdentity { asic_id: Some(AsicId(7)), ..n300() }, false),
            (ChipIdentity { asic_id: Some(AsicId(0)), ..n300() }, true),
            (ChipIdentity { driver_ordinal: Some(0), ..none.clone() }, true),
            (none, false),
        ];
        for (named, same) in cases {
            assert_eq!(same_chip(&known, &named), same, "{named:?}");
        }
    }

    #[test]
    fn regions_are_found_by_each_of_tt_metals_names() {
        let local: Vec<u64> = region_of(&n300()).collect();
        assert!(local.contains(&0x0001_4611_9030_2b00), "the composite of version 1");
        assert!(local.contains(&0x2_6190_302b), "the chip id of a T3000 sample");
        let remote = ChipIdentity { remote: true, location: 1, pci: None, ..n300() };
        let remote: Vec<u64> = region_of(&remote).collect();
        assert!(remote.contains(&0x0001_4611_9030_2b01));
        assert!(remote.contains(&0x3_6190_302b));
        assert!(remote.iter().all(|id| !local.contains(id)));
    }
}
