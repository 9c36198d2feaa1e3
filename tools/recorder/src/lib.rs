//! LD_PRELOAD library that records a process's large allocations.
