// Generated from crates/schema/health.toml by `cargo xtask generate`. Do not edit.

/** Faults that are mere events. */
export const EVENTS = ["came_back", "was_reset"];
