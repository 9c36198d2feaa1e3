//! Which device a description means: the one place where what a process says of a device becomes a
//! device of the snapshot. Pure.
//!
//! What tells a chip, the surest first: its ASIC id (or UMD's id of it), its PCI address, board and
//! location, the place in a Galaxy, the driver's number. Each narrows down what the surer ones
//! left; one that fits none of these is ignored, because ids come from several sources. A board id
//! alone never distinguishes chips: all 32 of a Galaxy may share one.
//!
//! The driver shows nothing of a remote chip, not even its ASIC id: it has its gateway's. Who
//! describes one may give its own id or the gateway's, and the gateway's address or number.

use telltale_schema::chip::{AsicId, BoardType, ChipIdentity, composite_id, possible_unique_ids};
use telltale_schema::device::{DeviceClass, DeviceIdentity};

use crate::observation::Described;

/// A device of the snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownDevice<'a> {
    pub(super) identity: &'a DeviceIdentity,
    /// A driver shows it; otherwise it is as its first process described it.
    pub(super) is_shown: bool,
    /// The number by which alone processes know it.
    pub(super) logical_id: Option<u32>,
}

/// A chip among the known devices, by its place there.
type Candidate<'a> = (usize, &'a ChipIdentity);

/// The place of the device that `named` means; none where it means none of these.
pub(super) fn find(known: &[KnownDevice<'_>], named: &Described) -> Option<usize> {
    if named.is_nameless() {
        let is_it = |one: &KnownDevice<'_>| {
            let nothing = Described::from(one.identity.chip()?.clone()).is_nameless();
            (!one.is_shown && nothing && one.logical_id == named.logical_id).then_some(())
        };
        return known.iter().position(|one| is_it(one).is_some());
    }
    let chip = &named.chip;
    // Most descriptions are whole.
    if let Some((place, _)) = chips(known).find(|(_, known)| *known == chip) {
        return Some(place);
    }
    let behind = (chip.remote || chip.location > 0).then(|| behind_gateway(known, chip)).flatten();
    let direct = || if chip.remote { on_board(known, chip) } else { linked(known, chip) };
    behind.or_else(direct).or_else(|| of_other_vendor(known, chip))
}

/// Another vendor's device is named by its PCI address; a partition, which has that of its device,
/// by nothing.
fn of_other_vendor(known: &[KnownDevice<'_>], named: &ChipIdentity) -> Option<usize> {
    let pci = named.pci.filter(|_| !named.remote)?;
    known.iter().position(|one| {
        let other = one.identity.other();
        other.is_some_and(|it| it.class != DeviceClass::Partition && it.pci == Some(pci))
    })
}

/// The remote chip that is meant.
fn behind_gateway(known: &[KnownDevice<'_>], named: &ChipIdentity) -> Option<usize> {
    let board_fits = |chip: &ChipIdentity| both(chip.board_id, named.board_id) != Some(false);
    let remote = chips(known).filter(|(_, chip)| chip.remote && board_fits(chip));
    let mut found = Narrowing::of(remote);
    let gateway = |chip: &ChipIdentity| {
        let is_it = |other: &&ChipIdentity| {
            !other.remote && (other.asic_id, other.board_id) == (chip.asic_id, chip.board_id)
        };
        chips(known).map(|(_, other)| other).find(is_it)
    };
    found.by(|chip| both(chip.board_id, named.board_id) == Some(true));
    found.by(|chip| same_asic(chip, named) || has_unique_id(chip, named));
    found.by(|chip| both(gateway(chip).and_then(|it| it.pci), named.pci) == Some(true));
    if !found.has_evidence {
        found.by(|chip| {
            let ordinal = gateway(chip).and_then(|it| it.driver_ordinal);
            both(ordinal, named.driver_ordinal) == Some(true)
        });
    }
    if !found.has_evidence && named.remote && is_named_by_own_id(named) {
        // An id that nothing shows is that of the only chip whose id nothing shows.
        let shown = |place: usize| known.get(place).is_some_and(|one| one.is_shown);
        found.left.retain(|(place, _)| shown(*place));
        found.has_evidence = found.left.len() == 1;
    }
    found.at(named.location)
}

/// Whether nothing but an ASIC id is given.
fn is_named_by_own_id(named: &ChipIdentity) -> bool {
    significant(named.asic_id).is_some()
        && named.board_id.is_none()
        && named.pci.is_none()
        && named.driver_ordinal.is_none()
}

/// The chip with a link of its own that is meant by a process which reached it through another one,
/// as one can on boards whose chips all have links (a p300): by its board and its place there.
fn on_board(known: &[KnownDevice<'_>], named: &ChipIdentity) -> Option<usize> {
    let has_links = |chip: &ChipIdentity| {
        chip.board_type != BoardType::Unknown && chip.board_type.remote_chips() == 0
    };
    let of_board = |chip: &ChipIdentity| {
        let sibling = |(_, other): Candidate<'_>| {
            same_asic(other, named) && both(other.board_id, chip.board_id) == Some(true)
        };
        both(chip.board_id, named.board_id) == Some(true) || chips(known).any(sibling)
    };
    let mut found = Narrowing::of(chips(known).filter(|(_, chip)| !chip.remote && has_links(chip)));
    found.by(|chip| has_unique_id(chip, named) && chip.location == location(named));
    found.by(|chip| of_board(chip) && chip.location == location(named));
    found.first()
}

/// The chip with a link of its own that is meant.
fn linked(known: &[KnownDevice<'_>], named: &ChipIdentity) -> Option<usize> {
    let mut found = Narrowing::of(chips(known).filter(|(_, chip)| !chip.remote));
    found.by(|chip| same_asic(chip, named));
    found.by(|chip| has_unique_id(chip, named));
    // Addresses move when a card does: where the id is another, so is the chip.
    let other_asic = |chip: &ChipIdentity| {
        both(significant(chip.asic_id), significant(named.asic_id)) == Some(false)
            && !has_unique_id(chip, named)
    };
    found.by(|chip| both(chip.pci, named.pci) == Some(true) && !other_asic(chip));
    found.by(|chip| {
        both(chip.board_id, named.board_id) == Some(true) && chip.location == location(named)
    });
    found.by(|chip| {
        let same_board = both(chip.board_id, named.board_id) != Some(false);
        same_board && both(chip.galaxy, named.galaxy) == Some(true)
    });
    // The driver's number changes at a reset: it counts where one of both has nothing better.
    let has_better = |chip: &ChipIdentity| {
        let chip = ChipIdentity { driver_ordinal: None, ..chip.clone() };
        !Described::from(chip).is_nameless()
    };
    let better = has_better(named);
    found.by(|chip| {
        both(chip.driver_ordinal, named.driver_ordinal) == Some(true)
            && !(better && has_better(chip))
    });
    found.first()
}

fn chips<'a>(known: &'a [KnownDevice<'a>]) -> impl Iterator<Item = Candidate<'a>> {
    let chip = |(place, one): (usize, &'a KnownDevice<'a>)| Some((place, one.identity.chip()?));
    known.iter().enumerate().filter_map(chip)
}

/// Chips that may be meant, fewer with each thing that distinguishes them.
struct Narrowing<'a> {
    left: Vec<Candidate<'a>>,
    /// Something fitted.
    has_evidence: bool,
}

// === impl Narrowing ===

impl<'a> Narrowing<'a> {
    fn of(chips: impl Iterator<Item = Candidate<'a>>) -> Self {
        Self { left: chips.collect(), has_evidence: false }
    }

    /// Keeps those that fit, if any does.
    fn by(&mut self, fits: impl Fn(&ChipIdentity) -> bool) {
        if self.left.iter().any(|(_, chip)| fits(chip)) {
            self.left.retain(|(_, chip)| fits(chip));
            self.has_evidence = true;
        }
    }

    fn first(&self) -> Option<usize> {
        self.left.first().filter(|_| self.has_evidence).map(|(place, _)| *place)
    }

    /// The one at `location`; where none was given, the only one.
    fn at(&self, location: u8) -> Option<usize> {
        let there = self.left.iter().find(|(_, chip)| chip.location == location);
        let only = self.left.first().filter(|_| location == 0 && self.left.len() == 1);
        there.or(only).filter(|_| self.has_evidence).map(|(place, _)| *place)
    }
}

fn same_asic(chip: &ChipIdentity, named: &ChipIdentity) -> bool {
    both(significant(chip.asic_id), significant(named.asic_id)) == Some(true)
}

/// Whether the id that is given is not what the firmware reports but UMD's id of this chip.
fn has_unique_id(chip: &ChipIdentity, named: &ChipIdentity) -> bool {
    let Some(AsicId(given)) = significant(named.asic_id) else { return false };
    // UMD's id of a chip without neighbours may be the board's, which no chip has alone.
    let is_boards = chip.board_id.is_some_and(|board| board.0 == given);
    let is_alone = chip.board_type == BoardType::N150;
    (!is_boards || is_alone) && possible_unique_ids(chip).any(|id| id == given)
}

/// The place on the board, as the driver's chips have it.
fn location(named: &ChipIdentity) -> u8 {
    named.galaxy.map_or(named.location, |position| position.location())
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
pub(crate) fn region_of(chip: &ChipIdentity) -> impl Iterator<Item = u64> + use<> {
    let board = chip.board_id.filter(|board| board.0 != 0);
    let composite = board.map(|board| composite_id(board, chip.location).value);
    composite.into_iter().chain(possible_unique_ids(chip))
}

#[cfg(test)]
mod tests;
