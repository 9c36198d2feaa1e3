//! How much is believed of one machine at most.

/// Devices of one snapshot: what ledgers and regions claim beyond it is refused.
pub const MAX_DEVICES: usize = 1024;

/// More bytes than any device has: such a value has wrapped below zero or is forged.
pub const MAX_DEVICE_BYTES: u64 = 1 << 48;

/// Devices of one snapshot that only processes of one user name: more than one machine
/// has chips, and few enough that no user crowds out the others.
pub const MAX_DEVICES_NAMED_BY_A_USER: usize = 64;
