//! Hardware sources, process discovery, reconciliation to a snapshot.
