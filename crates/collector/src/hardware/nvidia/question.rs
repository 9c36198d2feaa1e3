//! The things that a GPU is asked.

/// One thing that a GPU is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    Identity,
    Memory,
    Users,
    Load,
    Temperature,
    Power,
    Clocks,
    Fan,
    Throttling,
    Errors,
    Traffic,
    Instances,
    Engines,
    Energy,
    Repairs,
    NvLink,
    ProcessUse,
}

// === impl Question ===

impl Question {
    /// All of them, in the order in which they are asked.
    pub(super) const ALL: [Self; 17] = [
        Self::Identity,
        Self::Memory,
        Self::Users,
        Self::Load,
        Self::Temperature,
        Self::Power,
        Self::Clocks,
        Self::Fan,
        Self::Throttling,
        Self::Errors,
        Self::Traffic,
        Self::Instances,
        Self::Engines,
        Self::Energy,
        Self::Repairs,
        Self::NvLink,
        Self::ProcessUse,
    ];

    /// What it asks for, for a person.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Identity => "its name",
            Self::Memory => "its memory",
            Self::Users => "its processes",
            Self::Load => "how busy it is",
            Self::Temperature => "its temperature",
            Self::Power => "its power",
            Self::Clocks => "its clocks",
            Self::Fan => "its fan",
            Self::Throttling => "what slows it down",
            Self::Errors => "its memory's errors",
            Self::Traffic => "its PCIe traffic",
            Self::Instances => "its instances",
            Self::Engines => "its video engines and performance state",
            Self::Energy => "its energy and limits of power",
            Self::Repairs => "its replaced rows and PCIe replays",
            Self::NvLink => "its NVLink",
            Self::ProcessUse => "how busy processes keep it",
        }
    }
}
