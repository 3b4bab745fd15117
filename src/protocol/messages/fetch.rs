//! Behaviour: Reads record batches, as the log holds them, of many partitions at once; waits up
//! to `max_wait_ms` for `min_bytes`. A session (KIP-227) lets later requests name only what
//! changed. Followers send it too.
//!
//! Versions: 4–18, flexible from 12. 7 brings sessions (KIP-227), 9 leader epochs (KIP-320), 11
//! the rack of the client (KIP-392), 12 the epoch last fetched (KIP-595), 13 topic ids
//! (KIP-516), 15 the state of a fetching replica (KIP-903), 16 hints at the right leader
//! (KIP-951), 17 directory ids (KIP-853), 18 the high watermark a follower knows (KIP-1166).

use crate::wire::messages;
use crate::{ErrorCode, Records, Str, Uuid};

messages! {
    api Fetch;

    request FetchRequest {
        /// Only for the metadata quorum.
        cluster_id: Option<Str> [12.., tag 0, null 12..],
        /// -1 for consumers; since 15 in `replica_state`.
        replica_id: i32 [4..=14] = -1,
        replica_state: ReplicaState [15.., tag 1],
        /// How long the answer may wait for `min_bytes`.
        max_wait_ms: i32 [4..],
        min_bytes: i32 [4..],
        /// A limit for the whole answer; the first batch goes beyond it if it has to (KIP-74).
        max_bytes: i32 [4..] = i32::MAX,
        /// 0 reads up to the high watermark, 1 only what no open transaction can still undo.
        isolation_level: i8 [4..],
        /// 0 asks for no session or a new one, by `session_epoch` (KIP-227).
        session_id: i32 [7..],
        /// -1 ends the session and fetches without one, 0 begins one.
        session_epoch: i32 [7..] = -1,
        topics: Vec<FetchTopic> [4..],
        /// Partitions that leave the session (KIP-227).
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        /// Where the consumer is, to be shown a near replica (KIP-392).
        rack_id: Str [11..],
    }

    /// A replica and how it stands.
    part ReplicaState {
        replica_id: i32 [15..] = -1,
        /// Tells incarnations of the replica apart (KIP-903).
        replica_epoch: i64 [15..] = -1,
    }

    part FetchTopic {
        /// Up to version 12.
        topic: Str [4..=12],
        /// From version 13 on.
        topic_id: Uuid [13..],
        partitions: Vec<FetchPartition> [4..],
    }

    /// Where to read on, and how much.
    part FetchPartition {
        partition: i32 [4..],
        /// The epoch the sender believes in; -1 to have it not checked (KIP-320).
        current_leader_epoch: i32 [9..] = -1,
        fetch_offset: i64 [4..],
        /// Epoch of the last record the sender has; -1 for none (KIP-595).
        last_fetched_epoch: i32 [12..] = -1,
        /// Start of the sending follower's log; -1 from consumers.
        log_start_offset: i64 [5..] = -1,
        /// A limit for this partition; the first batch goes beyond it if it has to (KIP-74).
        partition_max_bytes: i32 [4..],
        replica_directory_id: Uuid [17.., tag 0],
        /// What the sending follower knows; the maximum if it does not say (KIP-1166).
        high_watermark: i64 [18.., tag 1] = i64::MAX,
    }

    /// Partitions that leave the session.
    part ForgottenTopic {
        topic: Str [7..=12],
        topic_id: Uuid [13..],
        partitions: Vec<i32> [7..],
    }

    response FetchResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [4..],
        /// Concerns the session; errors of partitions are with them.
        error_code: ErrorCode [7..],
        /// 0 if the broker keeps no session.
        session_id: i32 [7..],
        responses: Vec<FetchableTopicResponse> [4..],
        /// Where the leaders named in `current_leader` can be reached (KIP-951).
        node_endpoints: Vec<NodeEndpoint> [16.., tag 0],
    }

    part FetchableTopicResponse {
        topic: Str [4..=12],
        topic_id: Uuid [13..],
        partitions: Vec<PartitionData> [4..],
    }

    part PartitionData {
        partition_index: i32 [4..],
        error_code: ErrorCode [4..],
        high_watermark: i64 [4..],
        /// First offset that an open transaction can still undo.
        last_stable_offset: i64 [4..] = -1,
        log_start_offset: i64 [5..] = -1,
        /// Set if the logs part before the offset asked for (KIP-595).
        diverging_epoch: EpochEndOffset [12.., tag 0],
        /// Set if the client asked the wrong node (KIP-951).
        current_leader: LeaderIdAndEpoch [12.., tag 1],
        /// Only for the metadata quorum.
        snapshot_id: SnapshotId [12.., tag 2],
        /// Transactions in the range that were aborted; null unless only committed data was asked
        /// for.
        aborted_transactions: Option<Vec<AbortedTransaction>> [4.., null 4..] = Some(Vec::new()),
        /// The node to read from instead; -1 to stay (KIP-392).
        preferred_read_replica: i32 [11..] = -1,
        /// Batches as they lie in the log; the last one can be cut off.
        records: Option<Records> [4.., null 4..],
    }

    /// Where an epoch ends.
    part EpochEndOffset {
        /// The largest known epoch that is not above the one last fetched.
        epoch: i32 [12..] = -1,
        /// First offset behind the epoch; -1 if the epoch is unknown.
        end_offset: i64 [12..] = -1,
    }

    /// Who leads the partition now (KIP-951); -1 twice if nothing is said.
    part LeaderIdAndEpoch {
        leader_id: i32 [12..] = -1,
        leader_epoch: i32 [12..] = -1,
    }

    /// A snapshot of the metadata log.
    part SnapshotId {
        end_offset: i64 [4..] = -1,
        epoch: i32 [4..] = -1,
    }

    /// The records of this producer from here to its next abort marker do not count.
    part AbortedTransaction {
        producer_id: i64 [4..],
        /// First offset of the transaction in this partition.
        first_offset: i64 [4..],
    }

    /// A node and where it listens.
    part NodeEndpoint {
        node_id: i32 [16..],
        host: Str [16..],
        port: i32 [16..],
        rack: Option<Str> [16.., null 16..],
    }
}
