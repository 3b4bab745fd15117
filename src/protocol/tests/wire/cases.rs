//! Every message as a row of functions, so that a test can walk over all of them.

use bytes::Bytes;
use protocol::{ApiKey, DecodeError, Decoder, Encoder, Message, VersionRange};

/// Which of the two messages of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Request,
    Response,
}

/// One message type.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub side: Side,
    pub key: ApiKey,
    pub versions: VersionRange,
    pub decode: fn(Bytes, i16) -> Result<Decoded, DecodeError>,
    pub decode_only: fn(Bytes, i16) -> Result<(), DecodeError>,
    pub encode_default: fn(i16) -> Bytes,
}

/// What came of decoding, and what became of it when it was encoded again.
pub struct Decoded {
    pub shown: String,
    pub encoded: Bytes,
    pub remaining: usize,
}

fn decode<M: Message>(body: Bytes, version: i16) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder::new(body.clone());
    let message = M::decode(&mut decoder, version)?;
    check_limits(body, &message, version, decoder.elements());
    let encoded = encode(&message, version);
    let again = M::decode(&mut Decoder::new(encoded.clone()), version);
    // A NaN is not equal to itself, but it is shown alike.
    let same = again.as_ref() == Ok(&message) || format!("{again:?}") == format!("Ok({message:?})");
    assert!(same, "{message:?} came back as {again:?}");
    Ok(Decoded { shown: format!("{message:?}"), encoded, remaining: decoder.remaining() })
}

/// It is read within as many elements as it has and not within fewer, and written as if there was
/// no limit as long as it is within one.
fn check_limits<M: Message>(body: Bytes, message: &M, version: i16, elements: usize) {
    let read = |decoder: &mut Decoder| M::decode(decoder, version);
    let mut decoder = Decoder::new(body);
    let before = decoder.remaining();
    if let Some(fewer) = elements.checked_sub(1) {
        assert_eq!(decoder.within(fewer, read), Ok(None), "{message:?}");
        assert_eq!(decoder.remaining(), before, "{message:?}");
    }
    let again = decoder.within(elements, read);
    assert_eq!(format!("{again:?}"), format!("Ok(Some({message:?}))"));
    let mut encoder = Encoder::new().within(elements, usize::MAX);
    message.encode(&mut encoder, version);
    assert!(!encoder.is_exceeded(), "{message:?} in {elements} elements");
    assert_eq!(encoder.finish_contiguous(), encode(message, version));
}

fn decode_only<M: Message>(body: Bytes, version: i16) -> Result<(), DecodeError> {
    M::decode(&mut Decoder::new(body), version).map(drop)
}

fn encode<M: Message>(message: &M, version: i16) -> Bytes {
    let mut encoder = Encoder::new();
    message.encode(&mut encoder, version);
    encoder.finish_contiguous()
}

fn case<M: Message>(name: &'static str, side: Side) -> Case {
    Case {
        name,
        side,
        key: M::KEY,
        versions: M::VERSIONS,
        decode: decode::<M>,
        decode_only: decode_only::<M>,
        encode_default: |version| encode(&M::default(), version),
    }
}

macro_rules! cases {
    ($($module:ident $request:ident $response:ident,)*) => {
        /// Both messages of every API, in the order of the version table.
        pub fn all() -> Vec<Case> {
            vec![ $(
                case::<protocol::messages::$module::$request>(
                    stringify!($request), Side::Request,
                ),
                case::<protocol::messages::$module::$response>(
                    stringify!($response), Side::Response,
                ),
            )* ]
        }
    };
}

cases! {
    produce ProduceRequest ProduceResponse,
    fetch FetchRequest FetchResponse,
    list_offsets ListOffsetsRequest ListOffsetsResponse,
    metadata MetadataRequest MetadataResponse,
    offset_commit OffsetCommitRequest OffsetCommitResponse,
    offset_fetch OffsetFetchRequest OffsetFetchResponse,
    find_coordinator FindCoordinatorRequest FindCoordinatorResponse,
    join_group JoinGroupRequest JoinGroupResponse,
    heartbeat HeartbeatRequest HeartbeatResponse,
    leave_group LeaveGroupRequest LeaveGroupResponse,
    sync_group SyncGroupRequest SyncGroupResponse,
    describe_groups DescribeGroupsRequest DescribeGroupsResponse,
    list_groups ListGroupsRequest ListGroupsResponse,
    sasl_handshake SaslHandshakeRequest SaslHandshakeResponse,
    api_versions ApiVersionsRequest ApiVersionsResponse,
    create_topics CreateTopicsRequest CreateTopicsResponse,
    delete_topics DeleteTopicsRequest DeleteTopicsResponse,
    delete_records DeleteRecordsRequest DeleteRecordsResponse,
    init_producer_id InitProducerIdRequest InitProducerIdResponse,
    offset_for_leader_epoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse,
    add_partitions_to_txn AddPartitionsToTxnRequest AddPartitionsToTxnResponse,
    add_offsets_to_txn AddOffsetsToTxnRequest AddOffsetsToTxnResponse,
    end_txn EndTxnRequest EndTxnResponse,
    write_txn_markers WriteTxnMarkersRequest WriteTxnMarkersResponse,
    txn_offset_commit TxnOffsetCommitRequest TxnOffsetCommitResponse,
    describe_acls DescribeAclsRequest DescribeAclsResponse,
    create_acls CreateAclsRequest CreateAclsResponse,
    delete_acls DeleteAclsRequest DeleteAclsResponse,
    describe_configs DescribeConfigsRequest DescribeConfigsResponse,
    alter_configs AlterConfigsRequest AlterConfigsResponse,
    alter_replica_log_dirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse,
    describe_log_dirs DescribeLogDirsRequest DescribeLogDirsResponse,
    sasl_authenticate SaslAuthenticateRequest SaslAuthenticateResponse,
    create_partitions CreatePartitionsRequest CreatePartitionsResponse,
    create_delegation_token CreateDelegationTokenRequest CreateDelegationTokenResponse,
    renew_delegation_token RenewDelegationTokenRequest RenewDelegationTokenResponse,
    expire_delegation_token ExpireDelegationTokenRequest ExpireDelegationTokenResponse,
    describe_delegation_token DescribeDelegationTokenRequest DescribeDelegationTokenResponse,
    delete_groups DeleteGroupsRequest DeleteGroupsResponse,
    elect_leaders ElectLeadersRequest ElectLeadersResponse,
    incremental_alter_configs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
    alter_partition_reassignments
        AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse,
    list_partition_reassignments
        ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse,
    offset_delete OffsetDeleteRequest OffsetDeleteResponse,
    describe_client_quotas DescribeClientQuotasRequest DescribeClientQuotasResponse,
    alter_client_quotas AlterClientQuotasRequest AlterClientQuotasResponse,
    describe_user_scram_credentials
        DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse,
    alter_user_scram_credentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse,
    describe_quorum DescribeQuorumRequest DescribeQuorumResponse,
    update_features UpdateFeaturesRequest UpdateFeaturesResponse,
    describe_cluster DescribeClusterRequest DescribeClusterResponse,
    describe_producers DescribeProducersRequest DescribeProducersResponse,
    unregister_broker UnregisterBrokerRequest UnregisterBrokerResponse,
    describe_transactions DescribeTransactionsRequest DescribeTransactionsResponse,
    list_transactions ListTransactionsRequest ListTransactionsResponse,
    consumer_group_heartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse,
    consumer_group_describe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse,
    get_telemetry_subscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse,
    push_telemetry PushTelemetryRequest PushTelemetryResponse,
    list_config_resources ListConfigResourcesRequest ListConfigResourcesResponse,
    describe_topic_partitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse,
    share_group_heartbeat ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse,
    share_group_describe ShareGroupDescribeRequest ShareGroupDescribeResponse,
    share_fetch ShareFetchRequest ShareFetchResponse,
    share_acknowledge ShareAcknowledgeRequest ShareAcknowledgeResponse,
    initialize_share_group_state InitializeShareGroupStateRequest InitializeShareGroupStateResponse,
    read_share_group_state ReadShareGroupStateRequest ReadShareGroupStateResponse,
    write_share_group_state WriteShareGroupStateRequest WriteShareGroupStateResponse,
    delete_share_group_state DeleteShareGroupStateRequest DeleteShareGroupStateResponse,
    read_share_group_state_summary
        ReadShareGroupStateSummaryRequest ReadShareGroupStateSummaryResponse,
    streams_group_heartbeat StreamsGroupHeartbeatRequest StreamsGroupHeartbeatResponse,
    streams_group_describe StreamsGroupDescribeRequest StreamsGroupDescribeResponse,
    describe_share_group_offsets DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse,
    alter_share_group_offsets AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse,
    delete_share_group_offsets DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse,
    streams_group_topology_description_update
        StreamsGroupTopologyDescriptionUpdateRequest StreamsGroupTopologyDescriptionUpdateResponse,
    unregister_controller UnregisterControllerRequest UnregisterControllerResponse,
}
