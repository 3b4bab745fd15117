//! From a frame to its handler: header, version check, decoding, one `match` over the APIs served.
//!
//! A frame that cannot be understood ends its connection, as in Kafka: no error body exists for it.
//! The exception is ApiVersions, whose unknown versions are answered in version 0 (KIP-511).
//!
//! How long a request or an answer is, is up to the client. Here, on the core's loop, only so much
//! of it is read or written as holds nobody up; what is longer is read or written beside the loop.

use std::rc::Rc;

use bytes::Bytes;
use metadata::Decision;
use metadata::controller as decisions;
use protocol::{
    ApiKey, ApiSet, DecodeError, Decoder, Encoder, Message, RequestHeader, ResponseHeader,
};
use runtime::task;

use crate::connection::{Answer, Connection, Outcome};
use crate::controller;
use crate::handlers as on;
use crate::slot::Slot;

/// Which API a request belonged to, for metrics; none when the frame was not understood.
pub type ApiIndex = Option<ApiKey>;

/// What is served, accepted and advertised.
pub const SERVED_APIS: ApiSet = ApiSet::of(on::SERVED);

/// What a handler knows of the request besides its body.
#[derive(Clone)]
pub struct Context {
    pub slot: Rc<Slot>,
    pub connection: Rc<Connection>,
    pub api: ApiKey,
    pub header: RequestHeader,
    /// How many elements the lists of the request have together.
    pub elements: usize,
}

impl Context {
    pub fn version(&self) -> i16 {
        self.header.api_version
    }

    /// Encodes an answer whose length no client chooses.
    pub fn reply<R: Message>(&self, response: &R) -> Outcome {
        self.reply_in_version(response, self.header.api_version)
    }

    /// Encodes an answer in another version than that of the request.
    pub fn reply_in_version<R: Message>(&self, response: &R, version: i16) -> Outcome {
        let mut encoder = Encoder::framed(ANSWER_BYTES_EXPECTED);
        if cfg!(debug_assertions) {
            encoder = encoder.within(SLICE_ELEMENTS, SLICE_BYTES);
        }
        encode(&mut encoder, response, self.header.correlation_id, version);
        debug_assert!(!encoder.is_exceeded(), "a long answer of {}", R::KEY.name());
        Outcome::Reply(Answer { chunks: encoder.finish(), ..Answer::default() })
    }

    /// Encodes an answer that may be as long as the client likes.
    pub async fn reply_long<R: Message + Send + 'static>(&self, response: R) -> Outcome {
        let (id, version) = (self.header.correlation_id, self.header.api_version);
        let mut encoder = Encoder::framed(ANSWER_BYTES_EXPECTED);
        encoder = encoder.within(SLICE_ELEMENTS, SLICE_BYTES);
        encode(&mut encoder, &response, id, version);
        let chunks = match encoder.is_exceeded() {
            false => encoder.finish(),
            true => {
                drop(encoder);
                let whole = move || {
                    let mut encoder = Encoder::framed(SLICE_BYTES);
                    encode(&mut encoder, &response, id, version);
                    encoder.finish()
                };
                task::blocking(whole).await
            }
        };
        Outcome::Reply(Answer { chunks, ..Answer::default() })
    }

    /// Lets the controller decide about the request: beside its loop if there is much to decide.
    pub async fn decide<R: Send + 'static>(
        &self,
        decide: impl FnOnce(&decisions::Context<'_>) -> Decision<R> + Send + 'static,
    ) -> Result<R, controller::Stopping> {
        match self.elements > DECIDED_INLINE_MAX {
            true => controller::decide_beside(&self.slot, decide).await,
            false => controller::decide(&self.slot, decide).await,
        }
    }
}

fn encode<R: Message>(encoder: &mut Encoder, response: &R, correlation_id: i32, version: i16) {
    ResponseHeader { correlation_id }.encode(encoder, R::KEY, version);
    response.encode(encoder, version);
}

/// Begins the request in `frame`: runs its handler as far as it must run in order.
pub async fn begin(
    slot: &Rc<Slot>,
    connection: &Rc<Connection>,
    frame: Bytes,
) -> (ApiIndex, Outcome) {
    let mut decoder = Decoder::new(frame);
    let mut header = match decoder.within(SLICE_ELEMENTS, RequestHeader::decode) {
        Ok(Some(header)) => header,
        Ok(None) => return (None, Outcome::Close("a request header without end".to_owned())),
        Err(why) => return (None, Outcome::Close(format!("unreadable request header: {why}"))),
    };
    header.client_id = connection.detached(header.client_id);
    let (number, version) = (header.api_key, header.api_version);
    let Some(api) = ApiKey::from_wire(number) else {
        return (None, Outcome::Close(format!("API {number} is not known")));
    };
    let cx =
        Context { slot: slot.clone(), connection: connection.clone(), api, header, elements: 0 };
    if SERVED_APIS.serves(number, version).is_none() {
        let outcome = match api {
            ApiKey::ApiVersions => on::api_versions::unsupported(&cx),
            _ => Outcome::Close(format!("{} version {version} is not served", api.name())),
        };
        return (Some(api), outcome);
    }
    let outcome = match route(cx, decoder).await {
        Ok(outcome) => outcome,
        Err(why) => Outcome::Close(format!("unreadable {} request: {why}", api.name())),
    };
    (Some(api), outcome)
}

async fn route(mut cx: Context, body: Decoder) -> Result<Outcome, DecodeError> {
    macro_rules! serve {
        ($handler:ident) => {{
            let request = decode(&mut cx, body).await?;
            on::$handler::handle(cx, request).await
        }};
    }
    Ok(match cx.api {
        ApiKey::Produce => serve!(produce),
        ApiKey::Fetch => serve!(fetch),
        ApiKey::ListOffsets => serve!(list_offsets),
        ApiKey::Metadata => serve!(metadata),
        ApiKey::ApiVersions => serve!(api_versions),
        ApiKey::FindCoordinator => serve!(find_coordinator),
        ApiKey::JoinGroup => serve!(join_group),
        ApiKey::SyncGroup => serve!(sync_group),
        ApiKey::Heartbeat => serve!(heartbeat),
        ApiKey::LeaveGroup => serve!(leave_group),
        ApiKey::OffsetCommit => serve!(offset_commit),
        ApiKey::OffsetFetch => serve!(offset_fetch),
        ApiKey::OffsetDelete => serve!(offset_delete),
        ApiKey::DescribeGroups => serve!(describe_groups),
        ApiKey::ListGroups => serve!(list_groups),
        ApiKey::DeleteGroups => serve!(delete_groups),
        ApiKey::ConsumerGroupHeartbeat => serve!(consumer_group_heartbeat),
        ApiKey::ConsumerGroupDescribe => serve!(consumer_group_describe),
        ApiKey::CreateTopics => serve!(create_topics),
        ApiKey::DeleteTopics => serve!(delete_topics),
        ApiKey::DeleteRecords => serve!(delete_records),
        ApiKey::InitProducerId => serve!(init_producer_id),
        ApiKey::OffsetForLeaderEpoch => serve!(offset_for_leader_epoch),
        ApiKey::DescribeConfigs => serve!(describe_configs),
        ApiKey::AlterConfigs => serve!(alter_configs),
        ApiKey::IncrementalAlterConfigs => serve!(incremental_alter_configs),
        ApiKey::ListConfigResources => serve!(list_config_resources),
        ApiKey::CreatePartitions => serve!(create_partitions),
        ApiKey::AlterReplicaLogDirs => serve!(alter_replica_log_dirs),
        ApiKey::DescribeLogDirs => serve!(describe_log_dirs),
        ApiKey::ElectLeaders => serve!(elect_leaders),
        ApiKey::AlterPartitionReassignments => serve!(alter_partition_reassignments),
        ApiKey::ListPartitionReassignments => serve!(list_partition_reassignments),
        ApiKey::UpdateFeatures => serve!(update_features),
        ApiKey::DescribeCluster => serve!(describe_cluster),
        ApiKey::DescribeProducers => serve!(describe_producers),
        ApiKey::UnregisterBroker => serve!(unregister_broker),
        ApiKey::DescribeQuorum => serve!(describe_quorum),
        ApiKey::DescribeTopicPartitions => serve!(describe_topic_partitions),
        other => Outcome::Close(format!("{} is not served", other.name())),
    })
}

async fn decode<Q: Message + Send + 'static>(
    cx: &mut Context,
    mut body: Decoder,
) -> Result<Q, DecodeError> {
    let version = cx.version();
    if let Some(request) = body.within(SLICE_ELEMENTS, |body| Q::decode(body, version))? {
        cx.elements = body.elements();
        return Ok(request);
    }
    let whole = move || Q::decode(&mut body, version).map(|request| (request, body.elements()));
    let (request, elements) = task::blocking(whole).await?;
    cx.elements = elements;
    Ok(request)
}

/// Lets other tasks of the core run when this one has had its time: for loops over whatever a
/// client names, once for each.
pub async fn pause_if_long() {
    if task::should_yield() {
        task::yield_now().await;
    }
}

/// The same for loops whose turns take next to nothing: asks now and then only.
#[derive(Default)]
pub struct Pace {
    turns: usize,
}

impl Pace {
    pub async fn turn(&mut self) {
        self.turns += 1;
        if self.turns.is_multiple_of(TURNS_AT_A_TIME) {
            pause_if_long().await;
        }
    }
}

/// Turns of a fraction of a microsecond each, that are taken in one go.
const TURNS_AT_A_TIME: usize = 200;
/// Bytes that most answers need, records apart.
const ANSWER_BYTES_EXPECTED: usize = 512;
/// Elements of lists that are read or written in one go: a fraction of a millisecond.
const SLICE_ELEMENTS: usize = 2000;
/// Bytes that are written in one go, records apart.
const SLICE_BYTES: usize = 512 << 10;
/// So many topics are decided about in a millisecond or two.
const DECIDED_INLINE_MAX: usize = 100;
