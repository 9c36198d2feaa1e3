//! Messages and framing of the per-process endpoint.
