//! A software accelerator and a software machine.
//!
//! [`Machine`] is a directory tree with the files that the driver of a real machine shows;
//! every reader that takes `--root DIR` reads it as it reads `/`. Nothing here is measured from
//! hardware: names, formats, units and presence of the files are the driver's, the numbers in
//! them come from a small model.
#![forbid(unsafe_code)]

mod machine;

pub use machine::{
    AttributeError, ChipDescription, ChipLoad, CreateError, DriverVersion, Fault, Garbage,
    InjectError, InjectedErrno, Machine, MachineKind, MachineOptions, ParseDriverVersionError,
    ParseFaultError, ParseMachineKindError, PidsFault, TreeError,
};
