//! What a person sees: tables, JSON, CSV, from a snapshot.
