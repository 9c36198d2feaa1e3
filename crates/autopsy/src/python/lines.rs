//! From an instruction to its line, by the table of its code object.

use super::layout::LineFormat;

/// The line of the instruction at a byte of the code; the first line where the table does not say.
pub(super) fn line(format: LineFormat, table: &[u8], first: i64, instruction: u64) -> u32 {
    let line = match format {
        LineFormat::Lnotab => lnotab(table, first, instruction),
        LineFormat::Ranges => ranges(table, first, instruction),
        LineFormat::Locations => locations(table, first, instruction),
    };
    u32::try_from(line.unwrap_or(first)).unwrap_or(0)
}

/// Pairs: how many bytes further, and how many lines.
fn lnotab(table: &[u8], first: i64, instruction: u64) -> Option<i64> {
    let (mut at, mut line) = (0_u64, first);
    for [bytes, lines] in table.as_chunks::<2>().0 {
        at += u64::from(*bytes);
        if at > instruction {
            break;
        }
        line += i64::from(lines.cast_signed());
    }
    Some(line)
}

/// Pairs: how many bytes a range has, and how many lines further it is than the one before; -128 for none.
fn ranges(table: &[u8], first: i64, instruction: u64) -> Option<i64> {
    let (mut end, mut line) = (0_u64, first);
    for [bytes, lines] in table.as_chunks::<2>().0 {
        let lines = lines.cast_signed();
        if lines != i8::MIN {
            line += i64::from(lines);
        }
        end += u64::from(*bytes);
        if instruction < end {
            return (lines != i8::MIN).then_some(line);
        }
    }
    None
}

/// Entries that begin with a byte whose highest bit is set: a code, and how many instructions of two bytes.
fn locations(table: &[u8], first: i64, instruction: u64) -> Option<i64> {
    let (mut end, mut line) = (0_u64, first);
    let mut rest = table;
    while let [head, after @ ..] = rest {
        let (code, length) = ((head >> 3) & 15, u64::from(head & 7) + 1);
        rest = after;
        let has_line = match code {
            // No location.
            15 => false,
            // A line of any distance, the last ones with columns behind it, or none.
            13 | 14 => {
                line += signed(rest)?;
                true
            }
            10..=12 => {
                line += i64::from(code) - 10;
                true
            }
            _ => true,
        };
        end += 2 * length;
        if instruction < end {
            return has_line.then_some(line);
        }
        // What else the entry has is before the next byte with its highest bit set.
        let skipped = rest.iter().take_while(|byte| **byte & 0x80 == 0).count();
        rest = &rest[skipped..];
    }
    None
}

/// A number of six bits a byte, the least first, as long as bit 6 says that more come; its lowest bit is the sign.
fn signed(bytes: &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 63).checked_shl(u32::try_from(place).ok()? * 6)?;
        if byte & 64 == 0 {
            let magnitude = i64::try_from(value >> 1).ok()?;
            return Some(if value & 1 == 1 { -magnitude } else { magnitude });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_garbage_give_a_line_all_the_same() {
        for format in [LineFormat::Lnotab, LineFormat::Ranges, LineFormat::Locations] {
            for seed in 0..200_u32 {
                let next = |number: u32| number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let mut number = seed;
                let table: Vec<u8> = (0..seed)
                    .map(|_| {
                        number = next(number);
                        (number >> 24) as u8
                    })
                    .collect();
                line(format, &table, 7, u64::from(seed) * 3);
            }
        }
    }
}
