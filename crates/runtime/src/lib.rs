//! What a workload links: tracker, metrics endpoint, registry.
