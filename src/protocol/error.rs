//! Kafka's error codes, complete as of 4.4: number, name, whether a client may try again, and what
//! we say when nothing more precise is known.
//!
//! A code is what travels, so it is a number with names, not an enum: a newer peer's code passes
//! through unharmed. Which code an operation answers with is decided where the operation is.

use std::fmt;

/// A code as it stands in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

/// Whether the same request can succeed later without the client changing it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    Later,
    Never,
}

macro_rules! error_codes {
    ($( $number:literal $name:ident $retry:ident $message:literal; )*) => {
        impl ErrorCode {
            $( pub const $name: Self = Self($number); )*

            /// Every code that Kafka has given a meaning.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )* ];

            /// The name Kafka gave the code; `UNKNOWN_SERVER_ERROR` for a code without one, as
            /// Kafka's clients take it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                self.row().0
            }

            #[must_use]
            pub const fn retriable(self) -> bool {
                matches!(self.row().1, Retry::Later)
            }

            /// A sentence for people, for answers that have room for one.
            #[must_use]
            pub const fn message(self) -> &'static str {
                self.row().2
            }

            const fn row(self) -> (&'static str, Retry, &'static str) {
                match self.0 {
                    $( $number => (stringify!($name), Retry::$retry, $message), )*
                    _ => ("UNKNOWN_SERVER_ERROR", Retry::Never, "The broker failed unexpectedly."),
                }
            }
        }
    };
}

error_codes! {
    -1 UNKNOWN_SERVER_ERROR Never "The broker failed unexpectedly.";
    0 NONE Never "";
    1 OFFSET_OUT_OF_RANGE Never "The partition has no record at this offset.";
    2 CORRUPT_MESSAGE Later "The record batch is damaged: its checksum or its structure is wrong.";
    3 UNKNOWN_TOPIC_OR_PARTITION Later "There is no such topic or partition here.";
    4 INVALID_FETCH_SIZE Never "The size asked for cannot be fetched.";
    5 LEADER_NOT_AVAILABLE Later "The partition has no leader at the moment.";
    6 NOT_LEADER_OR_FOLLOWER Later "This node does not lead (or does not hold) the partition.";
    7 REQUEST_TIMED_OUT Later "The request was not finished in the time it allowed.";
    8 BROKER_NOT_AVAILABLE Never "The node is not available.";
    9 REPLICA_NOT_AVAILABLE Later "This node has no usable replica of the partition.";
    10 MESSAGE_TOO_LARGE Never "The record batch is larger than max.message.bytes allows.";
    11 STALE_CONTROLLER_EPOCH Never "The controller has been replaced by a newer one.";
    12 OFFSET_METADATA_TOO_LARGE Never "The metadata beside the committed offset is too long.";
    13 NETWORK_EXCEPTION Later "The connection ended before the answer came.";
    14 COORDINATOR_LOAD_IN_PROGRESS Later "The coordinator is still reading its state.";
    15 COORDINATOR_NOT_AVAILABLE Later "There is no coordinator at the moment.";
    16 NOT_COORDINATOR Later "This node does not coordinate the group or transactional id.";
    17 INVALID_TOPIC_EXCEPTION Never
        "The topic name is not allowed, or the topic may not be used so.";
    18 RECORD_LIST_TOO_LARGE Never "The record batch is larger than a segment of the topic.";
    19 NOT_ENOUGH_REPLICAS Later "Fewer replicas are in sync than min.insync.replicas demands.";
    20 NOT_ENOUGH_REPLICAS_AFTER_APPEND Later
        "Written, but to fewer replicas than min.insync.replicas demands.";
    21 INVALID_REQUIRED_ACKS Never "acks has to be -1, 0 or 1.";
    22 ILLEGAL_GENERATION Never "The group is in another generation than the request says.";
    23 INCONSISTENT_GROUP_PROTOCOL Never "The member has no protocol in common with the group.";
    24 INVALID_GROUP_ID Never "The group id is not valid.";
    25 UNKNOWN_MEMBER_ID Never "The group has no member with this id.";
    26 INVALID_SESSION_TIMEOUT Never
        "The session timeout is outside the range that the broker allows.";
    27 REBALANCE_IN_PROGRESS Never "The group is rebalancing; the member has to join again.";
    28 INVALID_COMMIT_OFFSET_SIZE Never "The offsets to be committed are too large together.";
    29 TOPIC_AUTHORIZATION_FAILED Never "Not permitted on this topic.";
    30 GROUP_AUTHORIZATION_FAILED Never "Not permitted on this group.";
    31 CLUSTER_AUTHORIZATION_FAILED Never "Not permitted on the cluster.";
    32 INVALID_TIMESTAMP Never
        "A timestamp is further from the broker's clock than the topic allows.";
    33 UNSUPPORTED_SASL_MECHANISM Never "The broker does not offer this SASL mechanism.";
    34 ILLEGAL_SASL_STATE Never "The request does not fit this stage of authentication.";
    35 UNSUPPORTED_VERSION Never "The broker does not serve this version of the request.";
    36 TOPIC_ALREADY_EXISTS Never "There is a topic with this name already.";
    37 INVALID_PARTITIONS Never "The number of partitions is not possible.";
    38 INVALID_REPLICATION_FACTOR Never
        "The replication factor is below 1 or above the number of hosts.";
    39 INVALID_REPLICA_ASSIGNMENT Never "The replica assignment is not possible.";
    40 INVALID_CONFIG Never "The configuration is not valid.";
    41 NOT_CONTROLLER Later "This node is not the controller.";
    42 INVALID_REQUEST Never "The request contradicts itself or lacks something.";
    43 UNSUPPORTED_FOR_MESSAGE_FORMAT Never "The record format does not support this.";
    44 POLICY_VIOLATION Never "A policy of the broker forbids this.";
    45 OUT_OF_ORDER_SEQUENCE_NUMBER Never "The producer's sequence number is not the next one.";
    46 DUPLICATE_SEQUENCE_NUMBER Never "The producer's sequence number has been used already.";
    47 INVALID_PRODUCER_EPOCH Never "The producer's epoch is older than the one known here.";
    48 INVALID_TXN_STATE Never "The transaction is in a state that does not permit this.";
    49 INVALID_PRODUCER_ID_MAPPING Never
        "The producer id does not belong to this transactional id.";
    50 INVALID_TRANSACTION_TIMEOUT Never
        "The transaction timeout is above transaction.max.timeout.ms.";
    51 CONCURRENT_TRANSACTIONS Later
        "An earlier operation of this transactional id is still going on.";
    52 TRANSACTION_COORDINATOR_FENCED Never "The sender no longer coordinates this transaction.";
    53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED Never "Not permitted with this transactional id.";
    54 SECURITY_DISABLED Never "Authorization is not switched on.";
    55 OPERATION_NOT_ATTEMPTED Never
        "An earlier part of the request failed, so this was not tried.";
    56 KAFKA_STORAGE_ERROR Later "The partition's files cannot be read or written.";
    57 LOG_DIR_NOT_FOUND Never "The broker has no such log directory.";
    58 SASL_AUTHENTICATION_FAILED Never "Authentication failed.";
    59 UNKNOWN_PRODUCER_ID Never "The partition no longer knows this producer.";
    60 REASSIGNMENT_IN_PROGRESS Never "The partition's replicas are being reassigned.";
    61 DELEGATION_TOKEN_AUTH_DISABLED Never "Delegation tokens are not switched on.";
    62 DELEGATION_TOKEN_NOT_FOUND Never "There is no such delegation token.";
    63 DELEGATION_TOKEN_OWNER_MISMATCH Never "The principal neither owns nor may renew the token.";
    64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED Never
        "Tokens are only managed over authenticated connections.";
    65 DELEGATION_TOKEN_AUTHORIZATION_FAILED Never "Not permitted with this delegation token.";
    66 DELEGATION_TOKEN_EXPIRED Never "The delegation token has expired.";
    67 INVALID_PRINCIPAL_TYPE Never "This type of principal is not supported.";
    68 NON_EMPTY_GROUP Never "The group still has members.";
    69 GROUP_ID_NOT_FOUND Never "There is no such group.";
    70 FETCH_SESSION_ID_NOT_FOUND Later "There is no such fetch session.";
    71 INVALID_FETCH_SESSION_EPOCH Later "The fetch session expects another epoch.";
    72 LISTENER_NOT_FOUND Later "The leader has no listener like the one that was asked.";
    73 TOPIC_DELETION_DISABLED Never "Deleting topics is switched off.";
    74 FENCED_LEADER_EPOCH Later "The leader epoch in the request is older than the partition's.";
    75 UNKNOWN_LEADER_EPOCH Later "The leader epoch in the request is newer than the partition's.";
    76 UNSUPPORTED_COMPRESSION_TYPE Never
        "This codec cannot be used with this version of the request.";
    77 STALE_BROKER_EPOCH Never "The node has been registered anew since.";
    78 OFFSET_NOT_AVAILABLE Later "A new leader does not know yet which offsets are committed.";
    79 MEMBER_ID_REQUIRED Never "Join again with the member id given here.";
    80 PREFERRED_LEADER_NOT_AVAILABLE Later "The preferred leader is not available.";
    81 GROUP_MAX_SIZE_REACHED Never "The group has as many members as it may have.";
    82 FENCED_INSTANCE_ID Never "Another member has taken over this group.instance.id.";
    83 ELIGIBLE_LEADERS_NOT_AVAILABLE Later "No replica that could lead is available.";
    84 ELECTION_NOT_NEEDED Later "The partition has the leader it should have.";
    85 NO_REASSIGNMENT_IN_PROGRESS Never "The partition's replicas are not being reassigned.";
    86 GROUP_SUBSCRIBED_TO_TOPIC Never "The group still subscribes to the topic.";
    87 INVALID_RECORD Never "The broker does not accept this record.";
    88 UNSTABLE_OFFSET_COMMIT Later "A transaction that commits these offsets is still open.";
    89 THROTTLING_QUOTA_EXCEEDED Later "The quota for such changes is used up for the moment.";
    90 PRODUCER_FENCED Never "A newer producer uses this transactional id.";
    91 RESOURCE_NOT_FOUND Never "What the request refers to does not exist.";
    92 DUPLICATE_RESOURCE Never "The request names the same thing twice.";
    93 UNACCEPTABLE_CREDENTIAL Never "The credential does not meet the requirements.";
    94 INCONSISTENT_VOTER_SET Never "Sender and receiver do not vote in the same quorum.";
    95 INVALID_UPDATE_VERSION Never "The version to be updated to is not valid.";
    96 FEATURE_UPDATE_FAILED Never "The feature level could not be changed.";
    97 PRINCIPAL_DESERIALIZATION_FAILURE Never
        "The principal of a forwarded request is not readable.";
    98 SNAPSHOT_NOT_FOUND Never "There is no such snapshot.";
    99 POSITION_OUT_OF_RANGE Never "The snapshot has no byte at this position.";
    100 UNKNOWN_TOPIC_ID Later "There is no topic with this id here.";
    101 DUPLICATE_BROKER_REGISTRATION Never "Another live node has this id.";
    102 BROKER_ID_NOT_REGISTERED Never "No node with this id is registered.";
    103 INCONSISTENT_TOPIC_ID Later "The topic of this name has another id than the request says.";
    104 INCONSISTENT_CLUSTER_ID Never "The request is meant for another cluster.";
    105 TRANSACTIONAL_ID_NOT_FOUND Never "There is no such transactional id.";
    106 FETCH_SESSION_TOPIC_ID_ERROR Later "The fetch session mixes topic names and topic ids.";
    107 INELIGIBLE_REPLICA Never "A replica proposed as in sync may not be.";
    108 NEW_LEADER_ELECTED Never "The change was made and gave the partition another leader.";
    109 OFFSET_MOVED_TO_TIERED_STORAGE Never "The offset is only in tiered storage.";
    110 FENCED_MEMBER_EPOCH Never
        "The member was fenced; it has to give up its partitions and join again.";
    111 UNRELEASED_INSTANCE_ID Never "Another member still holds this group.instance.id.";
    112 UNSUPPORTED_ASSIGNOR Never "The group does not offer this assignor.";
    113 STALE_MEMBER_EPOCH Never "The member has a newer epoch; try again with it.";
    114 MISMATCHED_ENDPOINT_TYPE Never "The request belongs on another kind of listener.";
    115 UNSUPPORTED_ENDPOINT_TYPE Never "This kind of endpoint is not supported.";
    116 UNKNOWN_CONTROLLER_ID Never "There is no controller with this id.";
    117 UNKNOWN_SUBSCRIPTION_ID Never "The telemetry subscription is not the current one.";
    118 TELEMETRY_TOO_LARGE Never "More telemetry was pushed than the broker takes at once.";
    119 INVALID_REGISTRATION Never "The controller does not accept this registration.";
    120 TRANSACTION_ABORTABLE Never
        "The transaction has failed; abort it and go on with the same id.";
    121 INVALID_RECORD_STATE Never "The record is not in a state that can be acknowledged.";
    122 SHARE_SESSION_NOT_FOUND Later "There is no such share session.";
    123 INVALID_SHARE_SESSION_EPOCH Later "The share session expects another epoch.";
    124 FENCED_STATE_EPOCH Never "The share state has a newer epoch.";
    125 INVALID_VOTER_KEY Never "The voter's directory id is another one.";
    126 DUPLICATE_VOTER Never "This node votes already.";
    127 VOTER_NOT_FOUND Never "This node does not vote.";
    128 INVALID_REGULAR_EXPRESSION Never "The pattern is no regular expression that can be used.";
    129 REBOOTSTRAP_REQUIRED Never
        "The client knows another cluster or node; it has to bootstrap anew.";
    130 STREAMS_INVALID_TOPOLOGY Never "The streams topology is not valid.";
    131 STREAMS_INVALID_TOPOLOGY_EPOCH Never "The epoch of the streams topology is not valid.";
    132 STREAMS_TOPOLOGY_FENCED Never "The group has a newer streams topology.";
    133 SHARE_SESSION_LIMIT_REACHED Later "No more share sessions fit on this node.";
    134 GROUP_DELETION_FAILED Never "A group could not be deleted; its own result says why.";
    135 STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED Never
        "The description of the topology was not stored.";
    136 CONTROLLER_ID_NOT_REGISTERED Never "No controller with this id is registered.";
}

impl ErrorCode {
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}
