use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use telltale_schema::reading::Absence;

use super::{Bucket, Buckets, read};
use crate::history::samples::Item;

fn survives(buckets: &Buckets) {
    let mut found = vec![Bucket::default(); buckets.all().len()];
    read(&buckets.write(), buckets.step_ms, |place, bucket| found[place] = *bucket).unwrap();
    assert_eq!(found, buckets.all());
}

/// The same spans put together to longer ones, by way of bytes.
fn longer(buckets: &Buckets, step_ms: u64, count: usize) -> Buckets {
    let mut all = Buckets::new(0, step_ms, count);
    let step = i64::try_from(buckets.step_ms).unwrap();
    read(&buckets.write(), buckets.step_ms, |place, bucket| {
        all.add_bucket(bucket, buckets.begins_ms() + step * i64::try_from(place).unwrap());
    })
    .unwrap();
    all
}

#[test]
fn a_value_is_split_at_the_ends_of_spans() {
    let mut buckets = Buckets::new(1_000, 1_000, 3);
    buckets.add_item(Item::Value(6), 1_500, 1_000);
    buckets.add_item(Item::Value(-2), 2_500, 600);
    buckets.add_item(Item::Value(9), 3_999, 5_000);
    let seen: Vec<_> =
        buckets.all().iter().map(|one| (one.covered_ms, one.sum, one.extremes)).collect();
    assert_eq!(
        seen,
        [
            (500, 3_000, Some((6, 6))),
            (1_000, 3_000 - 1_000, Some((-2, 6))),
            (101, -200 + 9, Some((-2, 9)))
        ]
    );
    assert_eq!(buckets.all()[1].mean(), Some(2.0));
    survives(&buckets);
}

#[test]
fn a_value_of_no_length_is_seen_and_weighs_nothing() {
    let mut buckets = Buckets::new(0, 1_000, 2);
    buckets.add_item(Item::Value(7), 1_000, 0);
    let seen = buckets.all()[1];
    assert_eq!((seen.covered_ms, seen.extremes, seen.mean()), (0, Some((7, 7)), Some(7.0)));
    assert!(buckets.all()[0].is_empty());
    survives(&buckets);
}

#[test]
fn a_reason_stays_where_nothing_is_known_and_gives_way_to_a_value() {
    let mut buckets = Buckets::new(0, 1_000, 3);
    buckets.add_item(Item::Absent(Absence::Resetting), 100, 1_000);
    buckets.add_item(Item::Absent(Absence::Resetting), 1_100, 1_000);
    buckets.add_item(Item::Value(1), 1_200, 100);
    let reasons: Vec<_> = buckets.all().iter().map(|one| one.absent).collect();
    assert_eq!(reasons, [Some(Absence::Resetting), None, None]);
    survives(&buckets);
}

#[test]
fn broken_bytes_are_refused() {
    let mut buckets = Buckets::new(0, 1_000, 4);
    buckets.add_item(Item::Value(i64::MAX), 0, 1_500);
    buckets.add_item(Item::Value(i64::MIN), 1_500, 900);
    survives(&buckets);
    let bytes = buckets.write();
    let whole = |bytes: &[u8]| read(bytes, 1_000, |_, _| ()).is_some();
    let intact = (0..bytes.len()).filter(|end| whole(&bytes[..*end])).count();
    assert!(intact <= 3, "only the ends of runs will do: {intact}");
    assert!(!whole(&[0xff, 0xff, 0xff, 0xff, 0x7f, 0]));
}

fn item() -> impl Strategy<Value = Option<Item>> {
    prop_oneof![
        6 => (0i64..1 << 36).prop_map(|value| Some(Item::Value(value))),
        2 => Just(Some(Item::Value(5))),
        1 => any::<i64>().prop_map(|value| Some(Item::Value(value))),
        1 => Just(Some(Item::Absent(Absence::TimedOut))),
        1 => Just(None),
    ]
}

proptest! {
    /// Whatever a series did, the sums of 10 seconds, of minutes that came from these, and of the
    /// samples themselves are one number, and no peak is lost.
    #[test]
    fn fewer_spans_have_the_same_sums(
        samples in vec((item(), 1u64..4_000, 0u64..=4_000), 0..200),
    ) {
        let mut tens = Buckets::new(0, 10_000, 100);
        let mut minutes = Buckets::new(0, 60_000, 20);
        let (mut at_ms, mut sum, mut time_ms) = (0i64, 0i128, 0u64);
        let mut extremes: Option<(i64, i64)> = None;
        for (item, next_ms, lasts_ms) in samples {
            let lasts_ms = lasts_ms.min(next_ms);
            if let Some(item) = item {
                tens.add_item(item, at_ms, lasts_ms);
                minutes.add_item(item, at_ms, lasts_ms);
            }
            if let Some(Item::Value(value)) = item {
                sum += i128::from(value) * i128::from(lasts_ms);
                time_ms += lasts_ms;
                let (least, greatest) = extremes.unwrap_or((value, value));
                extremes = Some((least.min(value), greatest.max(value)));
            }
            at_ms += i64::try_from(next_ms).unwrap();
        }
        survives(&tens);
        survives(&minutes);
        let from_tens = longer(&tens, 60_000, 20);
        prop_assert_eq!(from_tens.all(), minutes.all());
        let whole = longer(&from_tens, 1_200_000, 1).all()[0];
        prop_assert_eq!((whole.sum, whole.covered_ms, whole.extremes), (sum, time_ms, extremes));
    }
}
