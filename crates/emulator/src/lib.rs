//! A software accelerator and a software machine.
