//! The vocabulary: chip identity, memory kinds, readings, snapshots, metric definitions.
