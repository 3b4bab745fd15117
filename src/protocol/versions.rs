//! The one table of APIs: number, name, versions, and who may send it.
//!
//! A broker that serves only part of it says so with an [`ApiSet`]; what it advertises and what it
//! accepts follow from that. The ranges are those of Apache Kafka 4.4 without its unstable
//! versions.

/// Versions from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    pub min: i16,
    pub max: i16,
}

impl VersionRange {
    #[must_use]
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    pub fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }
}

/// Who may send a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Whoever may use the resource that the request names.
    Client,
    /// Only who holds ClusterAction on the cluster: other brokers, and tools of operators.
    Cluster,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiSpec {
    pub key: ApiKey,
    pub name: &'static str,
    /// The versions that can be decoded and answered.
    pub served: VersionRange,
    /// The versions named to clients: wider than `served` for Produce, whose old versions are
    /// advertised and refused because librdkafka takes their absence for the absence of the
    /// codecs that came with them.
    pub advertised: VersionRange,
    /// The first version with compact lengths and tagged fields (KIP-482); `NEVER` if none has.
    pub flexible_from: i16,
    pub sender: Sender,
}

/// Stands in `flexible_from` of an API without flexible versions.
pub const NEVER: i16 = i16::MAX;

impl ApiSpec {
    #[must_use]
    pub const fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }

    /// Header version 2 has tagged fields, version 1 has not.
    #[must_use]
    pub const fn request_header_version(&self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// An ApiVersions answer keeps header version 0, so that a client which asked with a version
    /// the broker does not know can still read it (KIP-511).
    #[must_use]
    pub const fn response_header_version(&self, version: i16) -> i16 {
        if self.is_flexible(version) && !matches!(self.key, ApiKey::ApiVersions) { 1 } else { 0 }
    }
}

macro_rules! apis {
    ($( $number:literal $api:ident $min:literal-$max:literal
        $(advertised from $floor:literal)?, $flexible:tt, $sender:ident; )*) => {
        /// An API by its number on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey { $( $api = $number, )* }

        impl ApiKey {
            /// The API with this number, if the table has it.
            #[must_use]
            pub const fn from_wire(number: i16) -> Option<Self> {
                match number { $( $number => Some(Self::$api), )* _ => None }
            }

            #[must_use]
            pub const fn spec(self) -> &'static ApiSpec {
                match self { $( Self::$api => {
                    const SPEC: ApiSpec = ApiSpec {
                        key: ApiKey::$api,
                        name: stringify!($api),
                        served: VersionRange { min: $min, max: $max },
                        advertised: VersionRange { min: floor!($min $($floor)?), max: $max },
                        flexible_from: flexible_from!($flexible),
                        sender: Sender::$sender,
                    };
                    &SPEC
                } )* }
            }
        }

        const KEYS: &[ApiKey] = &[ $( ApiKey::$api, )* ];
    };
}

macro_rules! floor {
    ($min:literal) => {
        $min
    };
    ($min:literal $floor:literal) => {
        $floor
    };
}

macro_rules! flexible_from {
    (never) => {
        NEVER
    };
    ([$version:literal]) => {
        $version
    };
}

// number, name, served versions, first flexible version, who may send it
apis! {
    0 Produce 3-13 advertised from 0, [9], Client;
    1 Fetch 4-18, [12], Client;
    2 ListOffsets 1-11, [6], Client;
    3 Metadata 0-13, [9], Client;
    8 OffsetCommit 2-10, [8], Client;
    9 OffsetFetch 1-10, [6], Client;
    10 FindCoordinator 0-6, [3], Client;
    11 JoinGroup 0-9, [6], Client;
    12 Heartbeat 0-4, [4], Client;
    13 LeaveGroup 0-5, [4], Client;
    14 SyncGroup 0-5, [4], Client;
    15 DescribeGroups 0-6, [5], Client;
    16 ListGroups 0-5, [3], Client;
    17 SaslHandshake 0-1, never, Client;
    18 ApiVersions 0-5, [3], Client;
    19 CreateTopics 2-7, [5], Client;
    20 DeleteTopics 1-6, [4], Client;
    21 DeleteRecords 0-2, [2], Client;
    22 InitProducerId 0-5, [2], Client;
    23 OffsetForLeaderEpoch 2-4, [4], Client;
    24 AddPartitionsToTxn 0-5, [3], Client;
    25 AddOffsetsToTxn 0-4, [3], Client;
    26 EndTxn 0-5, [3], Client;
    27 WriteTxnMarkers 1-2, [1], Cluster;
    28 TxnOffsetCommit 0-6, [3], Client;
    29 DescribeAcls 1-3, [2], Client;
    30 CreateAcls 1-3, [2], Client;
    31 DeleteAcls 1-3, [2], Client;
    32 DescribeConfigs 1-4, [4], Client;
    33 AlterConfigs 0-2, [2], Client;
    34 AlterReplicaLogDirs 1-2, [2], Client;
    35 DescribeLogDirs 1-5, [2], Client;
    36 SaslAuthenticate 0-2, [2], Client;
    37 CreatePartitions 0-3, [2], Client;
    38 CreateDelegationToken 1-3, [2], Client;
    39 RenewDelegationToken 1-2, [2], Client;
    40 ExpireDelegationToken 1-2, [2], Client;
    41 DescribeDelegationToken 1-3, [2], Client;
    42 DeleteGroups 0-3, [2], Client;
    43 ElectLeaders 0-2, [2], Client;
    44 IncrementalAlterConfigs 0-1, [1], Client;
    45 AlterPartitionReassignments 0-1, [0], Client;
    46 ListPartitionReassignments 0-0, [0], Client;
    47 OffsetDelete 0-0, never, Client;
    48 DescribeClientQuotas 0-1, [1], Client;
    49 AlterClientQuotas 0-1, [1], Client;
    50 DescribeUserScramCredentials 0-0, [0], Client;
    51 AlterUserScramCredentials 0-0, [0], Client;
    55 DescribeQuorum 0-2, [0], Client;
    57 UpdateFeatures 0-2, [0], Client;
    60 DescribeCluster 0-2, [0], Client;
    61 DescribeProducers 0-0, [0], Client;
    64 UnregisterBroker 0-0, [0], Client;
    65 DescribeTransactions 0-0, [0], Client;
    66 ListTransactions 0-2, [0], Client;
    68 ConsumerGroupHeartbeat 0-1, [0], Client;
    69 ConsumerGroupDescribe 0-1, [0], Client;
    71 GetTelemetrySubscriptions 0-0, [0], Client;
    72 PushTelemetry 0-0, [0], Client;
    74 ListConfigResources 0-1, [0], Client;
    75 DescribeTopicPartitions 0-0, [0], Client;
    76 ShareGroupHeartbeat 1-1, [0], Client;
    77 ShareGroupDescribe 1-1, [0], Client;
    78 ShareFetch 1-2, [0], Client;
    79 ShareAcknowledge 1-2, [0], Client;
    83 InitializeShareGroupState 0-0, [0], Cluster;
    84 ReadShareGroupState 0-0, [0], Cluster;
    85 WriteShareGroupState 0-1, [0], Cluster;
    86 DeleteShareGroupState 0-0, [0], Cluster;
    87 ReadShareGroupStateSummary 0-1, [0], Cluster;
    88 StreamsGroupHeartbeat 0-1, [0], Client;
    89 StreamsGroupDescribe 0-1, [0], Client;
    90 DescribeShareGroupOffsets 0-1, [0], Client;
    91 AlterShareGroupOffsets 0-0, [0], Client;
    92 DeleteShareGroupOffsets 0-0, [0], Client;
    93 StreamsGroupTopologyDescriptionUpdate 0-0, [0], Client;
    94 UnregisterController 0-0, [0], Client;
}

impl ApiKey {
    #[must_use]
    pub const fn number(self) -> i16 {
        self as i16
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spec().name
    }
}

/// Every API of the table, in the order of their numbers.
#[must_use]
pub const fn all() -> &'static [ApiKey] {
    KEYS
}

/// Which APIs of the table a broker really serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiSet(u128);

impl ApiSet {
    #[must_use]
    pub const fn of(keys: &[ApiKey]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < keys.len() {
            bits |= 1 << keys[index].number();
            index += 1;
        }
        Self(bits)
    }

    #[must_use]
    pub const fn contains(self, key: ApiKey) -> bool {
        self.0 & 1 << key.number() != 0
    }

    /// Whether a request with these two numbers can be decoded and answered.
    #[must_use]
    pub fn serves(self, number: i16, version: i16) -> Option<ApiKey> {
        ApiKey::from_wire(number)
            .filter(|&key| self.contains(key) && key.spec().served.contains(version))
    }

    /// The rows of the APIs in the set, in the order of their numbers.
    pub fn specs(self) -> impl Iterator<Item = &'static ApiSpec> {
        all().iter().filter(move |key| self.contains(**key)).map(|key| key.spec())
    }
}
