//! Names of the sockets that a service makes in a runtime directory.

/// Where it answers by gRPC.
pub use telltale_wire::TELEMETRY_SOCKET as TELEMETRY;

/// Where it passes on what its legacy clients reported.
pub const LEGACY_CLIENTS: &str = "legacy-clients.sock";

/// Where it answers by HTTP, as its help names it.
pub const HTTP: &str = "http.sock";
