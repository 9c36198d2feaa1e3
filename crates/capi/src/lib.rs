//! The C ABI: `libtelltale`. `include/telltale.h` is its documentation; this crate turns its calls
//! into those of `telltale-runtime` and adds nothing, but for PyTorch's allocator, which allocates.
//!
//! Pointers are checked for null, numbers for being allowed, texts for their length, and no panic
//! crosses the border.

mod abi;
mod cuda;
mod debug_streams;
mod describe;
mod devices;
mod metrics;
mod runtimes;
mod status;
mod text;
mod torch;

pub use abi::{DeviceStruct, Label, Metric, Options, Programs};
pub use devices::{
    DeviceHandle, telltale_allocate, telltale_allocate_sized, telltale_allocation_failed,
    telltale_count_operations, telltale_count_traffic, telltale_device_close, telltale_device_open,
    telltale_free, telltale_free_sized, telltale_report_quota, telltale_report_ring_buffer,
    telltale_report_throttled,
};
pub use metrics::{
    CounterHandle, GaugeHandle, HistogramHandle, telltale_counter_add, telltale_counter_register,
    telltale_counter_release, telltale_gauge_add, telltale_gauge_register, telltale_gauge_release,
    telltale_gauge_set, telltale_histogram_observe, telltale_histogram_register,
    telltale_histogram_release,
};
pub use runtimes::{
    RuntimeHandle, telltale_global, telltale_options_init, telltale_report_kernel_cache,
    telltale_report_programs, telltale_runtime_release, telltale_start, telltale_version,
};
pub use status::{Status, telltale_status_text};
pub use torch::{telltale_torch_alloc, telltale_torch_free};
