//! Names of the sockets that a service makes in a runtime directory.

/// Where it answers by gRPC.
pub const TELEMETRY: &str = "telemetry.sock";

/// Where it passes on what its legacy clients reported.
pub const LEGACY_CLIENTS: &str = "legacy-clients.sock";

/// Where it answers by HTTP, as its help names it.
pub const HTTP: &str = "http.sock";
