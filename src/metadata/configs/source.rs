//! Where a value comes from, and in which order the places go.

/// In the order of DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Topic,
    /// Set for one node while it runs.
    Node,
    /// Set for all nodes while they run.
    AllNodes,
    /// Flags, environment and configuration file.
    Static,
    Default,
    Logger,
    ClientMetrics,
    Group,
}

impl Source {
    pub fn wire_code(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::Node => 2,
            Self::AllNodes => 3,
            Self::Static => 4,
            Self::Default => 5,
            Self::Logger => 6,
            Self::ClientMetrics => 7,
            Self::Group => 8,
        }
    }
}
