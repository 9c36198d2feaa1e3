//! The C ABI: libtelltale.
