//! Blocks of series: writing them, making coarser ones of them, letting go of old ones.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::buckets::{self, Buckets};
use super::part;
use super::recorder::ClosedBlock;
use super::samples;
use super::varint;

/// How long series are kept, and how finely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tier {
    /// The length of its spans; 0 for series as they were sampled.
    pub(crate) resolution_ms: i64,
    /// For how much recorded time it is kept.
    pub(crate) kept_ms: i64,
    /// The time that one block of it stands for.
    pub(crate) block_ms: i64,
}

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

/// From the finest to the coarsest.
pub(crate) const TIERS: [Tier; 3] = [
    Tier { resolution_ms: 0, kept_ms: HOUR, block_ms: 10 * SECOND },
    Tier { resolution_ms: 10 * SECOND, kept_ms: 24 * HOUR, block_ms: 600 * SECOND },
    Tier { resolution_ms: 60 * SECOND, kept_ms: 30 * 24 * HOUR, block_ms: HOUR },
];

/// The longest time that one sample stands for, whatever the interval.
pub(crate) const LONGEST_SAMPLE_MS: i64 = 3 * HOUR;

/// Blocks that one coarser one is made of, at most.
const MAX_MERGED: usize = 1000;

/// A block without its series.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) id: i64,
    pub(crate) resolution_ms: i64,
    pub(crate) run: i64,
    pub(crate) start_ms: i64,
    pub(crate) end_ms: i64,
    pub(crate) mark_ms: i64,
    pub(crate) sampled: (i64, i64),
    pub(crate) bytes: i64,
    /// When each sample was taken; empty for spans.
    pub(crate) sampled_ms: Vec<i64>,
}

const COLUMNS: &str = "id, resolution_ms, run, start_ms, end_ms, mark, first_sampled, \
    last_sampled, bytes, times";

/// Writes a block as it was sampled.
pub(super) fn write(transaction: &Transaction<'_>, block: &ClosedBlock) -> rusqlite::Result<()> {
    let bytes: usize = block.parts.iter().map(|(_, series)| series.len()).sum();
    let text = "INSERT INTO block (resolution_ms, run, start_ms, end_ms, mark, first_sampled, \
        last_sampled, has_finer, bytes, times) VALUES (0, ?, ?, ?, ?, 0, 0, 0, ?, ?)";
    transaction.prepare_cached(text)?.execute(params![
        block.run,
        block.start_ms,
        block.end_ms,
        block.mark_ms,
        i64::try_from(bytes).unwrap_or(i64::MAX),
        block.times,
    ])?;
    let id = transaction.last_insert_rowid();
    let text = "UPDATE block SET first_sampled = ?1, last_sampled = ?1 WHERE id = ?1";
    transaction.prepare_cached(text)?.execute([id])?;
    let mut insert = insert_part(transaction)?;
    for (subject, series) in &block.parts {
        insert.execute(params![id, subject, series])?;
    }
    Ok(())
}

fn insert_part<'a>(
    transaction: &'a Transaction<'_>,
) -> rusqlite::Result<rusqlite::CachedStatement<'a>> {
    transaction.prepare_cached("INSERT INTO part (block, subject, series) VALUES (?, ?, ?)")
}

/// Blocks that overlap this time, by their beginning.
pub(super) fn overlapping(
    connection: &Connection,
    tier: &Tier,
    from_ms: i64,
    to_ms: i64,
) -> rusqlite::Result<Vec<Block>> {
    // No block is longer than that, so that the index bounds both ends.
    let earliest = from_ms.saturating_sub(2 * tier.block_ms + LONGEST_SAMPLE_MS);
    let text = format!(
        "SELECT {COLUMNS} FROM block WHERE resolution_ms = ? AND start_ms >= ? AND start_ms <= ? \
         AND end_ms >= ? ORDER BY start_ms, id"
    );
    let mut statement = connection.prepare_cached(&text)?;
    let values = params![tier.resolution_ms, earliest, to_ms, from_ms];
    statement.query_map(values, block)?.collect()
}

/// The block of a tier that begins last of those that do not begin after this moment; the newer one
/// where the wall clock was set back and a time was there twice.
pub(super) fn last_before(
    connection: &Connection,
    tier: &Tier,
    at_ms: i64,
) -> rusqlite::Result<Option<Block>> {
    let covering = format!(
        "SELECT {COLUMNS} FROM block WHERE resolution_ms = ? AND start_ms <= ? \
         ORDER BY start_ms DESC, id DESC LIMIT 1"
    );
    let values = params![tier.resolution_ms, at_ms];
    connection.prepare_cached(&covering)?.query_row(values, block).optional()
}

fn block(row: &rusqlite::Row<'_>) -> rusqlite::Result<Block> {
    let start_ms: i64 = row.get(3)?;
    let times: Vec<u8> = row.get(9)?;
    let mut rest = times.as_slice();
    let mut at_ms = start_ms;
    let mut sampled_ms = Vec::new();
    while let Some(since) = varint::take_u64(&mut rest) {
        at_ms = at_ms.saturating_add_unsigned(since);
        sampled_ms.push(at_ms);
    }
    Ok(Block {
        id: row.get(0)?,
        resolution_ms: row.get(1)?,
        run: row.get(2)?,
        start_ms,
        end_ms: row.get(4)?,
        mark_ms: row.get(5)?,
        sampled: (row.get(6)?, row.get(7)?),
        bytes: row.get(8)?,
        sampled_ms,
    })
}

/// The series of one subject in a block; none where it has none.
pub(super) fn part(
    connection: &Connection,
    block: i64,
    subject: i64,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let text = "SELECT series FROM part WHERE block = ? AND subject = ?";
    connection.prepare_cached(text)?.query_row([block, subject], |row| row.get(0)).optional()
}

// === impl Block ===

impl Block {
    /// Adds a series of this block to spans. Nothing is added of a series that is damaged.
    pub(super) fn add_to(&self, series: &[u8], to: &mut Buckets) {
        if self.resolution_ms > 0 {
            let step = self.resolution_ms.unsigned_abs();
            let first_ms = self.start_ms.div_euclid(self.resolution_ms) * self.resolution_ms;
            let _ = buckets::read(series, step, |place, bucket| {
                let place = i64::try_from(place).unwrap_or(i64::MAX);
                to.add_bucket(bucket, first_ms + place.saturating_mul(self.resolution_ms));
            });
            return;
        }
        let Some(items) = samples::read(series, self.sampled_ms.len()) else { return };
        let ends = self.sampled_ms.iter().skip(1).chain([&self.end_ms]);
        for ((item, at_ms), end_ms) in items.into_iter().zip(&self.sampled_ms).zip(ends) {
            if let Some(item) = item {
                to.add_item(item, *at_ms, u64::try_from(end_ms - at_ms).unwrap_or(0));
            }
        }
    }
}

/// Makes one coarser block of those that are complete and were not made coarser yet, the oldest
/// first; whether there was something to do.
pub(super) fn make_coarser(
    connection: &mut Connection,
    largest_bytes: i64,
) -> rusqlite::Result<bool> {
    for (finer, coarser) in TIERS.iter().zip(&TIERS[1..]) {
        let blocks = complete(connection, finer, coarser, largest_bytes)?;
        if !blocks.is_empty() {
            let transaction = connection.transaction()?;
            merge(&transaction, &blocks, coarser)?;
            transaction.commit()?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The oldest blocks of a tier that are in none of the coarser one, as far as they belong into one
/// block; none while more of them may come.
fn complete(
    connection: &Connection,
    finer: &Tier,
    coarser: &Tier,
    largest_bytes: i64,
) -> rusqlite::Result<Vec<Block>> {
    let done = "SELECT coalesce(max(last_sampled), 0) FROM block WHERE resolution_ms = ?";
    let done: i64 =
        connection.prepare_cached(done)?.query_row([coarser.resolution_ms], |row| row.get(0))?;
    let text = format!(
        "SELECT {COLUMNS} FROM block WHERE resolution_ms = ? AND first_sampled > ? \
         ORDER BY first_sampled LIMIT ?"
    );
    let mut statement = connection.prepare_cached(&text)?;
    let most = MAX_MERGED as u64;
    let mut rows = statement.query(params![finer.resolution_ms, done, most.cast_signed()])?;
    let window = |block: &Block| (block.run, block.start_ms.div_euclid(coarser.block_ms));
    let (mut blocks, mut bytes) = (Vec::<Block>::new(), 0i64);
    while let Some(row) = rows.next()? {
        let next = block(row)?;
        let full = bytes > 0 && bytes.saturating_add(next.bytes) > largest_bytes;
        if blocks.first().is_some_and(|first| full || window(first) != window(&next)) {
            return Ok(blocks);
        }
        bytes = bytes.saturating_add(next.bytes);
        blocks.push(next);
    }
    // With so many, what is still to come goes into the next one.
    Ok(if blocks.len() == MAX_MERGED { blocks } else { Vec::new() })
}

fn merge(transaction: &Transaction<'_>, blocks: &[Block], tier: &Tier) -> rusqlite::Result<()> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(()) };
    let text = "INSERT INTO block (resolution_ms, run, start_ms, end_ms, mark, first_sampled, \
        last_sampled, has_finer, bytes, times) VALUES (?, ?, ?, ?, ?, ?, ?, 1, 0, x'')";
    transaction.prepare_cached(text)?.execute(params![
        tier.resolution_ms,
        first.run,
        first.start_ms,
        last.end_ms,
        last.mark_ms,
        first.sampled.0,
        last.sampled.1,
    ])?;
    let id = transaction.last_insert_rowid();
    let subjects = "SELECT DISTINCT subject FROM part WHERE block BETWEEN ? AND ? ORDER BY subject";
    let mut statement = transaction.prepare_cached(subjects)?;
    let subjects: Vec<i64> = statement
        .query_map([first.id, last.id], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut insert = insert_part(transaction)?;
    let mut total = 0i64;
    for subject in subjects {
        let series = merged(transaction, blocks, tier, subject)?;
        if !series.is_empty() {
            total = total.saturating_add_unsigned(series.len() as u64);
            insert.execute(params![id, subject, series])?;
        }
    }
    let text = "UPDATE block SET bytes = ? WHERE id = ?";
    transaction.prepare_cached(text)?.execute([total, id])?;
    Ok(())
}

/// All series of a subject over these blocks, in longer spans.
fn merged(
    connection: &Connection,
    blocks: &[Block],
    tier: &Tier,
    subject: i64,
) -> rusqlite::Result<Vec<u8>> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(Vec::new()) };
    let step_ms = tier.resolution_ms.unsigned_abs();
    let mut all: Vec<(u16, Buckets)> = Vec::new();
    for block in blocks {
        let Some(bytes) = part(connection, block.id, subject)? else { continue };
        let mut rest = bytes.as_slice();
        while let Some((code, series)) = part::take(&mut rest) {
            let place = all.iter().position(|(known, _)| *known == code).unwrap_or_else(|| {
                all.push((code, Buckets::covering(first.start_ms, last.end_ms, step_ms)));
                all.len() - 1
            });
            block.add_to(series, &mut all[place].1);
        }
    }
    let mut bytes = Vec::new();
    for (code, buckets) in all {
        part::put(code, &buckets.write(), &mut bytes);
    }
    Ok(bytes)
}

/// Lets go of blocks that were made coarser and are older than their tier is kept, and of the
/// coarsest ones that are too old.
pub(super) fn forget_old(transaction: &Transaction<'_>, mark_ms: i64) -> rusqlite::Result<()> {
    for (finer, coarser) in TIERS.iter().zip(&TIERS[1..]) {
        let old = "SELECT id FROM block WHERE resolution_ms = ? AND has_finer AND mark < ?";
        let old: Vec<i64> = transaction
            .prepare_cached(old)?
            .query_map([coarser.resolution_ms, mark_ms.saturating_sub(finer.kept_ms)], |row| {
                row.get(0)
            })?
            .collect::<rusqlite::Result<_>>()?;
        for id in old {
            remove_finer(transaction, id)?;
        }
    }
    let [.., coarsest] = &TIERS;
    let text = "SELECT id FROM block WHERE resolution_ms = ? AND mark < ?";
    let old: Vec<i64> = transaction
        .prepare_cached(text)?
        .query_map([coarsest.resolution_ms, mark_ms.saturating_sub(coarsest.kept_ms)], |row| {
            row.get(0)
        })?
        .collect::<rusqlite::Result<_>>()?;
    for id in old {
        remove_finer(transaction, id)?;
        remove(transaction, id)?;
    }
    Ok(())
}

/// Lets go of the oldest blocks there are: those that were made into one, or one; none where there
/// is none. Gives the recorded time at which what is left begins.
pub(super) fn forget_oldest(transaction: &Transaction<'_>) -> rusqlite::Result<Option<i64>> {
    let text = "SELECT id, mark, first_sampled, resolution_ms FROM block ORDER BY mark, id LIMIT 1";
    let oldest = transaction
        .prepare_cached(text)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let Some((id, mark, sampled, resolution)): Option<(i64, i64, i64, i64)> = oldest else {
        return Ok(None);
    };
    let parent = "SELECT id FROM block WHERE has_finer AND resolution_ms > ?1 \
        AND first_sampled <= ?2 AND last_sampled >= ?2 ORDER BY resolution_ms LIMIT 1";
    let parent: Option<i64> = transaction
        .prepare_cached(parent)?
        .query_row([resolution, sampled], |row| row.get(0))
        .optional()?;
    match parent {
        Some(parent) => remove_finer(transaction, parent)?,
        None => {
            remove_finer(transaction, id)?;
            remove(transaction, id)?;
        }
    }
    Ok(Some(mark))
}

/// Removes every finer block that this one was made from.
fn remove_finer(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let text = "SELECT finer.id FROM block AS finer JOIN block AS whole ON whole.id = ? \
        WHERE finer.resolution_ms < whole.resolution_ms \
        AND finer.first_sampled BETWEEN whole.first_sampled AND whole.last_sampled";
    let finer: Vec<i64> = transaction
        .prepare_cached(text)?
        .query_map([id], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for finer in finer {
        remove(transaction, finer)?;
    }
    transaction.prepare_cached("UPDATE block SET has_finer = 0 WHERE id = ?")?.execute([id])?;
    Ok(())
}

fn remove(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM part WHERE block = ?")?.execute([id])?;
    transaction.prepare_cached("DELETE FROM block WHERE id = ?")?.execute([id])?;
    Ok(())
}
