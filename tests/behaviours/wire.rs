//! A blocking client of one node that speaks exactly the version it is told to.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use protocol::messages as m;
use protocol::{Decoder, Encoder, Message, RequestHeader, ResponseHeader, Str};

use crate::broker::DEADLINE;

/// A request and the answer that belongs to it.
pub trait Call: Message {
    type Answer: Message;
}

macro_rules! calls {
    ($( $request:path => $answer:path; )*) => {
        $( impl Call for $request { type Answer = $answer; } )*
    };
}

calls! {
    m::alter_partition_reassignments::AlterPartitionReassignmentsRequest
        => m::alter_partition_reassignments::AlterPartitionReassignmentsResponse;
    m::list_partition_reassignments::ListPartitionReassignmentsRequest
        => m::list_partition_reassignments::ListPartitionReassignmentsResponse;
    m::api_versions::ApiVersionsRequest => m::api_versions::ApiVersionsResponse;
    m::consumer_group_describe::ConsumerGroupDescribeRequest
        => m::consumer_group_describe::ConsumerGroupDescribeResponse;
    m::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest
        => m::consumer_group_heartbeat::ConsumerGroupHeartbeatResponse;
    m::create_partitions::CreatePartitionsRequest => m::create_partitions::CreatePartitionsResponse;
    m::create_topics::CreateTopicsRequest => m::create_topics::CreateTopicsResponse;
    m::delete_groups::DeleteGroupsRequest => m::delete_groups::DeleteGroupsResponse;
    m::delete_records::DeleteRecordsRequest => m::delete_records::DeleteRecordsResponse;
    m::delete_topics::DeleteTopicsRequest => m::delete_topics::DeleteTopicsResponse;
    m::describe_cluster::DescribeClusterRequest => m::describe_cluster::DescribeClusterResponse;
    m::describe_configs::DescribeConfigsRequest => m::describe_configs::DescribeConfigsResponse;
    m::describe_groups::DescribeGroupsRequest => m::describe_groups::DescribeGroupsResponse;
    m::describe_log_dirs::DescribeLogDirsRequest => m::describe_log_dirs::DescribeLogDirsResponse;
    m::describe_producers::DescribeProducersRequest
        => m::describe_producers::DescribeProducersResponse;
    m::describe_topic_partitions::DescribeTopicPartitionsRequest
        => m::describe_topic_partitions::DescribeTopicPartitionsResponse;
    m::fetch::FetchRequest => m::fetch::FetchResponse;
    m::find_coordinator::FindCoordinatorRequest => m::find_coordinator::FindCoordinatorResponse;
    m::heartbeat::HeartbeatRequest => m::heartbeat::HeartbeatResponse;
    m::incremental_alter_configs::IncrementalAlterConfigsRequest
        => m::incremental_alter_configs::IncrementalAlterConfigsResponse;
    m::init_producer_id::InitProducerIdRequest => m::init_producer_id::InitProducerIdResponse;
    m::join_group::JoinGroupRequest => m::join_group::JoinGroupResponse;
    m::leave_group::LeaveGroupRequest => m::leave_group::LeaveGroupResponse;
    m::list_offsets::ListOffsetsRequest => m::list_offsets::ListOffsetsResponse;
    m::metadata::MetadataRequest => m::metadata::MetadataResponse;
    m::offset_commit::OffsetCommitRequest => m::offset_commit::OffsetCommitResponse;
    m::offset_delete::OffsetDeleteRequest => m::offset_delete::OffsetDeleteResponse;
    m::offset_fetch::OffsetFetchRequest => m::offset_fetch::OffsetFetchResponse;
    m::offset_for_leader_epoch::OffsetForLeaderEpochRequest
        => m::offset_for_leader_epoch::OffsetForLeaderEpochResponse;
    m::produce::ProduceRequest => m::produce::ProduceResponse;
    m::sync_group::SyncGroupRequest => m::sync_group::SyncGroupResponse;
}

/// A connection to one node.
pub struct Connection {
    stream: TcpStream,
    last_id: i32,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect_timeout(&address, DEADLINE).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection { stream, last_id: 0 }
    }

    /// This end's address.
    pub fn address(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// Sends a request and waits for its answer.
    pub fn ask<Q: Call>(&mut self, version: i16, request: &Q) -> Q::Answer {
        let id = self.send(version, request);
        let (answered, answer) = self.receive_as::<Q::Answer>(version);
        assert_eq!(answered, id, "an answer to another request");
        answer
    }

    /// Sends a request and gives its correlation id.
    pub fn send<Q: Message>(&mut self, version: i16, request: &Q) -> i32 {
        self.last_id += 1;
        let header = RequestHeader {
            api_key: Q::KEY.number(),
            api_version: version,
            correlation_id: self.last_id,
            client_id: Some(Str::from_static("behaviours")),
        };
        let mut encoder = Encoder::framed(256);
        header.encode(&mut encoder);
        request.encode(&mut encoder, version);
        for chunk in encoder.finish() {
            self.stream.write_all(&chunk).unwrap();
        }
        self.last_id
    }

    /// Sends bytes as one frame.
    pub fn send_frame(&mut self, frame: &[u8]) {
        let size = u32::try_from(frame.len()).unwrap().to_be_bytes();
        self.stream.write_all(&[&size, frame].concat()).unwrap();
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next answer's frame; none when the broker has closed the connection.
    pub fn receive(&mut self) -> Option<Bytes> {
        let mut size = [0; 4];
        match self.stream.read_exact(&mut size) {
            Ok(()) => {}
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("neither an answer nor an end")
            }
            Err(_) => return None,
        }
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(size)).unwrap()];
        self.stream.read_exact(&mut frame).unwrap();
        Some(frame.into())
    }

    /// The next answer and the correlation id it carries.
    pub fn receive_as<R: Message>(&mut self, version: i16) -> (i32, R) {
        let Some(frame) = self.receive() else { panic!("closed instead of {:?}", R::KEY) };
        let mut decoder = Decoder::new(frame);
        let header = ResponseHeader::decode(&mut decoder, R::KEY, version).unwrap();
        let answer = R::decode(&mut decoder, version).unwrap();
        assert_eq!(decoder.remaining(), 0, "bytes behind {answer:?}");
        (header.correlation_id, answer)
    }

    /// Waits for the broker to close the connection without another answer.
    pub fn expect_end(&mut self) {
        if let Some(answer) = self.receive() {
            panic!("answered instead of closing: {answer:?}");
        }
    }

    /// Whether nothing has come back so far.
    pub fn is_silent(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        matches!(peeked, Err(why) if why.kind() == ErrorKind::WouldBlock)
    }
}
