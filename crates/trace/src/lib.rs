//! The allocation trace format: recorded by the preload recorder, replayed by the demo.
