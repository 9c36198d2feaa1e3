//! What most of some values are, and how far they usually lie apart.

/// The mean; 0 of none.
pub(crate) fn average(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// By how much the mean of so few may be off; of one nothing is known.
pub(crate) fn error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if count < 2.0 {
        return f64::INFINITY;
    }
    let mean = average(values);
    let squares: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
    (squares / (count - 1.0) / count).sqrt()
}

/// The usual distance from the middle: 1.4826 times the median of the distances, which of a normal distribution
/// is the standard deviation. Of two nothing can be said.
pub(crate) fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.len() < 3 {
        return 0.0;
    }
    let middle_value = middle(&mut values);
    let mut distances: Vec<f64> = values.iter().map(|one| (one - middle_value).abs()).collect();
    1.4826 * middle(&mut distances)
}

/// The lower of the two in the middle. There is one at least.
pub(crate) fn middle(values: &mut [f64]) -> f64 {
    let place = (values.len() - 1) / 2;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}
