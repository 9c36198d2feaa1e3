//! What an aarch64 processor says about a fault of memory: its exception syndrome register, which
//! Linux writes as one of the records behind a signal's registers.

use super::Use;
use super::records::find;

/// The record with the register: "ESR" and 1.
const MAGIC: u32 = 0x4553_5201;

/// How memory was used; none if the records do not say it.
pub(super) fn memory_use(records: &[u8]) -> Option<Use> {
    let syndrome = syndrome(records)?;
    // Bits 26 to 31 are the exception's class. Bit 6 of a data abort is a write, unless bit 8 says that
    // it was the maintenance of a cache, for which bit 6 is always set.
    match syndrome >> 26 & 0x3F {
        0x20 | 0x21 => Some(Use::Execute),
        0x24 | 0x25 if syndrome & 1 << 8 == 0 && syndrome & 1 << 6 != 0 => Some(Use::Write),
        0x24 | 0x25 => Some(Use::Read),
        _ => None,
    }
}

fn syndrome(records: &[u8]) -> Option<u64> {
    let value = records.get(find(records, MAGIC)?)?;
    value.first_chunk().map(|value| u64::from_le_bytes(*value))
}

#[cfg(test)]
mod tests {
    use super::{MAGIC, Use, memory_use};

    /// The registers of floating point come first.
    const FLOATING_POINT: u32 = 0x4650_8001;

    fn record(magic: u32, value: &[u8]) -> Vec<u8> {
        let bytes = u32::try_from(8 + value.len()).unwrap();
        [&magic.to_le_bytes(), &bytes.to_le_bytes(), value].concat()
    }

    #[test]
    fn the_use_of_memory_is_read_from_the_records() {
        let (read, write) = (0x9200_0006_u64, 0x9200_0046);
        let (execute, other) = (0x8200_0006, 0x0200_0000);
        let maintenance = 0x9200_0146;
        for (syndrome, expected) in [
            (read, Some(Use::Read)),
            (write, Some(Use::Write)),
            (maintenance, Some(Use::Read)),
            (execute, Some(Use::Execute)),
            (other, None),
        ] {
            let mut records = record(FLOATING_POINT, &[7; 520]);
            records.extend(record(MAGIC, &syndrome.to_le_bytes()));
            records.resize(4_096, 0);
            assert_eq!(memory_use(&records), expected, "{syndrome:#x}");
        }
    }

    #[test]
    fn records_without_it_or_cut_off_say_nothing() {
        let mut without = record(FLOATING_POINT, &[7; 520]);
        without.resize(4_096, 0);
        let cut_off = record(MAGIC, &[0; 4]);
        let endless = [FLOATING_POINT.to_le_bytes(), 4_u32.to_le_bytes()].concat();
        for records in [without, cut_off, endless, Vec::new(), vec![0xFF; 4_096]] {
            assert_eq!(memory_use(&records), None);
        }
    }
}
