//! What is known about one configuration key, as data: the tables are lists of these.

/// One key of one table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigKey {
    pub name: &'static str,
    pub kind: Kind,
    /// As text in canonical form; None where Kafka has null.
    pub default: Option<&'static str>,
    pub rule: Rule,
    pub importance: Importance,
    pub scope: Scope,
    pub effect: Effect,
    /// For a topic key: the broker keys that give its default, the first that is set wins.
    /// For a broker key: those that say the same in another unit, itself among them, finest first.
    pub synonyms: &'static [&'static str],
    pub documentation: &'static str,
    /// Accepted, never shown: for tests that need what no operator should set.
    pub internal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    Text,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

/// What a value of the right kind must satisfy besides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    Fraction(f64, f64),
    OneOf(&'static [&'static str]),
    OneOfIgnoringCase(&'static [&'static str]),
    /// Every element of a list.
    EachOneOf(&'static [&'static str]),
    /// 1 to 9, or -1 for the library's own default.
    GzipLevel,
    /// `*`, or partition:node pairs.
    ThrottledReplicas,
    /// `address:count` pairs.
    AddressLimits,
    NotEmpty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    Low,
    Medium,
    High,
}

/// Who may change a broker key while the broker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    ReadOnly,
    PerNode,
    ClusterWide,
}

/// What a key does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Honoured,
    /// Accepted with a warning that says why it changes nothing.
    Inert(&'static str),
    /// Only its default is accepted, because ignoring another value would deceive.
    Refused(&'static str),
}

impl ConfigKey {
    /// A honoured, read-only key of medium importance; the methods below say what differs.
    pub(super) const fn new(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self {
            name,
            kind,
            default: Some(default),
            rule: Rule::Any,
            importance: Importance::Medium,
            scope: Scope::ReadOnly,
            effect: Effect::Honoured,
            synonyms: &[],
            documentation: "",
            internal: false,
        }
    }

    pub(super) const fn unset(name: &'static str, kind: Kind) -> Self {
        Self { default: None, ..Self::new(name, kind, "") }
    }

    pub(super) const fn rule(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    pub(super) const fn at_least(self, least: i64) -> Self {
        self.rule(Rule::AtLeast(least))
    }

    pub(super) const fn high(self) -> Self {
        Self { importance: Importance::High, ..self }
    }

    pub(super) const fn low(self) -> Self {
        Self { importance: Importance::Low, ..self }
    }

    pub(super) const fn cluster_wide(self) -> Self {
        Self { scope: Scope::ClusterWide, ..self }
    }

    pub(super) const fn per_node(self) -> Self {
        Self { scope: Scope::PerNode, ..self }
    }

    pub(super) const fn inert(self, reason: &'static str) -> Self {
        Self { effect: Effect::Inert(reason), ..self }
    }

    /// Inert until an ability is served.
    pub(super) const fn needs(self, served: bool, reason: &'static str) -> Self {
        if served { self } else { self.inert(reason) }
    }

    pub(super) const fn refused(self, reason: &'static str) -> Self {
        Self { effect: Effect::Refused(reason), ..self }
    }

    pub(super) const fn synonyms(self, synonyms: &'static [&'static str]) -> Self {
        Self { synonyms, ..self }
    }

    pub(super) const fn doc(self, documentation: &'static str) -> Self {
        Self { documentation, ..self }
    }

    pub(super) const fn internal(self) -> Self {
        Self { internal: true, ..self }
    }

    /// Values that no answer may show.
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// Itself and the keys that say the same in another unit, finest first.
    pub fn same_setting(&self) -> Vec<&'static str> {
        if self.synonyms.is_empty() { vec![self.name] } else { self.synonyms.to_vec() }
    }
}

impl Kind {
    /// The number that DescribeConfigs has for it.
    pub fn wire_code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::Text => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }
}
