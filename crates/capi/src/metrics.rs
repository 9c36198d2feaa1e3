//! The application's own metrics.

use telltale_runtime::{Counter, Gauge, Histogram, Registration, Registry};

use crate::abi::{Metric, structure};
use crate::runtimes::RuntimeHandle;
use crate::status::{Status, Wrong, borrowed, give, guarded, store, take_back};
use crate::text;

/// Labels checked in one call; the runtime allows fewer and says so.
const MAX_LABELS: usize = 256;
/// Bounds checked in one call; the runtime allows fewer and says so.
const MAX_BOUNDS: usize = 4096;

/// `telltale_counter_h` points to it.
pub struct CounterHandle(Counter);

/// `telltale_gauge_h` points to it.
pub struct GaugeHandle(Gauge);

/// `telltale_histogram_h` points to it.
pub struct HistogramHandle(Histogram);

/// A metric's description in Rust.
struct Described {
    registry: Registry,
    name: String,
    help: String,
    unit: String,
    labels: Vec<(String, String)>,
}

/// Registers what `registration` has begun, and hands the handle over, which works in any case.
///
/// # Safety
/// `place` is null or points to memory for a handle.
unsafe fn register<M, H>(
    registration: Registration<'_, M>,
    described: &Described,
    handle: impl FnOnce(M) -> H,
    place: *mut *mut H,
) -> Result<(), Wrong> {
    let plain = registration.help(&described.help).unit(&described.unit);
    let labels = described.labels.iter();
    let labelled = labels.fold(plain, |it, (name, value)| it.label(name, value));
    let mut refused = None;
    let make = || {
        let (metric, error) = labelled.registered();
        refused = error;
        Ok(handle(metric))
    };
    // SAFETY: the caller of this function vouches for the place.
    unsafe { give(place, make) }?;
    refused.map_or(Ok(()), |_| Err(Wrong::Invalid))
}

/// # Safety
/// `runtime` is null or a live handle, `metric` is null or points to the structure, whose texts are
/// null or end with a zero.
unsafe fn described(
    runtime: *const RuntimeHandle,
    metric: *const Metric,
) -> Result<Described, Wrong> {
    // SAFETY: the caller of this function vouches for all of it.
    unsafe {
        let (runtime, metric) = (borrowed(runtime)?, structure(metric)?);
        let mut labels = Vec::new();
        for label in text::array(metric.labels, metric.label_count, MAX_LABELS)? {
            labels.push((text::required(label.name)?, text::required(label.value)?));
        }
        Ok(Described {
            registry: runtime.0.registry(),
            name: text::required(metric.name)?,
            help: text::optional(metric.help)?.unwrap_or_default(),
            unit: text::optional(metric.unit)?.unwrap_or_default(),
            labels,
        })
    }
}

/// Registers a counter.
///
/// # Safety
/// `runtime` is null or a live handle, `metric` is null or points to the structure, whose texts end
/// with a zero, `counter` is null or points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_counter_register(
    runtime: *const RuntimeHandle,
    metric: *const Metric,
    counter: *mut *mut CounterHandle,
) -> Status {
    // SAFETY: the caller vouches for all three unless they are null.
    guarded(|| unsafe {
        store(counter, std::ptr::null_mut())?;
        let described = described(runtime, metric)?;
        register(described.registry.counter(&described.name), &described, CounterHandle, counter)
    })
}

/// Adds to a counter.
///
/// # Safety
/// `counter` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_counter_add(counter: *const CounterHandle, count: u64) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the handle unless it is null.
        unsafe { borrowed(counter) }?.0.add(count);
        Ok(())
    })
}

/// Gives a counter's handle back; its value stays visible.
///
/// # Safety
/// `counter` is null or a handle that is given back for the first time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_counter_release(counter: *mut CounterHandle) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    guarded(|| unsafe { take_back(counter) })
}

/// Registers a gauge.
///
/// # Safety
/// As [`telltale_counter_register`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_gauge_register(
    runtime: *const RuntimeHandle,
    metric: *const Metric,
    gauge: *mut *mut GaugeHandle,
) -> Status {
    // SAFETY: the caller vouches for all three unless they are null.
    guarded(|| unsafe {
        store(gauge, std::ptr::null_mut())?;
        let described = described(runtime, metric)?;
        register(described.registry.gauge(&described.name), &described, GaugeHandle, gauge)
    })
}

/// Sets a gauge.
///
/// # Safety
/// `gauge` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_gauge_set(gauge: *const GaugeHandle, value: f64) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the handle unless it is null.
        unsafe { borrowed(gauge) }?.0.set(value);
        Ok(())
    })
}

/// Adds to a gauge.
///
/// # Safety
/// `gauge` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_gauge_add(gauge: *const GaugeHandle, change: f64) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the handle unless it is null.
        unsafe { borrowed(gauge) }?.0.add(change);
        Ok(())
    })
}

/// Gives a gauge's handle back.
///
/// # Safety
/// `gauge` is null or a handle that is given back for the first time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_gauge_release(gauge: *mut GaugeHandle) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    guarded(|| unsafe { take_back(gauge) })
}

/// Registers a histogram.
///
/// # Safety
/// As [`telltale_counter_register`]; `bounds` is null or points to `bound_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_histogram_register(
    runtime: *const RuntimeHandle,
    metric: *const Metric,
    bounds: *const f64,
    bound_count: usize,
    histogram: *mut *mut HistogramHandle,
) -> Status {
    // SAFETY: the caller vouches for all of them unless they are null.
    guarded(|| unsafe {
        store(histogram, std::ptr::null_mut())?;
        let described = described(runtime, metric)?;
        let bounds = text::array(bounds, bound_count, MAX_BOUNDS)?;
        let registration = described.registry.histogram(&described.name, bounds);
        register(registration, &described, HistogramHandle, histogram)
    })
}

/// Counts one observation.
///
/// # Safety
/// `histogram` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_histogram_observe(
    histogram: *const HistogramHandle,
    value: f64,
) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the handle unless it is null.
        unsafe { borrowed(histogram) }?.0.observe(value);
        Ok(())
    })
}

/// Gives a histogram's handle back.
///
/// # Safety
/// `histogram` is null or a handle that is given back for the first time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_histogram_release(histogram: *mut HistogramHandle) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    guarded(|| unsafe { take_back(histogram) })
}
