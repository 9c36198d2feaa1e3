//! Benchmarks that print ours and the baseline from one run.
