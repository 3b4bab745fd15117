//! A broker of one topic that does what a test tells it to. It shows itself as two nodes: one leads
//! the partitions, both coordinate groups.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use protocol::batch::header::set_base_offset;
use protocol::batch::{BatchHeader, Batches};
use protocol::messages::api_versions::{ApiVersion, ApiVersionsResponse};
use protocol::messages::fetch::{
    FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData,
};
use protocol::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use protocol::messages::init_producer_id::InitProducerIdResponse;
use protocol::messages::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use protocol::messages::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse, OffsetFetchResponseGroup,
};
use protocol::messages::produce::{
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use protocol::{
    ApiKey, Decoder, Encoder, ErrorCode, Message, RequestHeader, ResponseHeader, Str, Uuid,
};
use runtime::local::{Event, Queue};
use runtime::mesh::{OneshotSender, oneshot};
use runtime::net::{Conn, Listener, Reader, Writer};
use runtime::time::{now, sleep, within};
use runtime::{Config, Exit};

/// What becomes of the `n`-th produce request or commit, counted over all connections from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Answered so long after it was received, later requests meanwhile.
    Answer(Duration),
    /// Answered with an error.
    Refuse(ErrorCode),
    /// Nothing is answered or received any more for so long.
    Stall(Duration),
    /// The connection is closed.
    Hang,
    /// The answer leaves behind that of the next request.
    Swap,
}

/// Given the number of a request.
pub type Script = fn(u64) -> Act;

pub const TOPIC: &str = "stub";
const TOPIC_ID: Uuid = Uuid([7; 16]);
const PARTITIONS: i32 = 4;

/// A running stub; ends when dropped.
pub struct Stub {
    pub address: SocketAddr,
    /// Most produce requests and commits that it had and had not answered at one time.
    pub peak: Arc<AtomicUsize>,
    stop: Option<OneshotSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Stub {
    pub fn start(script: Script) -> Stub {
        let (stop, stopped) = oneshot::<()>();
        let (told, address) = mpsc::channel();
        let peak = Arc::<AtomicUsize>::default();
        let shown = Arc::clone(&peak);
        let stopped = Arc::new(std::sync::Mutex::new(Some(stopped)));
        let main = move |_core: runtime::Core<()>| {
            let (told, peak) = (told.clone(), Arc::clone(&peak));
            let stopped = stopped.lock().unwrap().take().unwrap();
            async move {
                let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
                let address = listener.local_addr();
                told.send(address).unwrap();
                runtime::task::spawn(accept(listener, Rc::new(Log::new(script, address, peak))));
                // An end without a word is an end too.
                let _ = stopped.await;
                Exit::Clean
            }
        };
        let thread = std::thread::spawn(move || {
            assert_eq!(runtime::run(Config::new(vec![0]), main), Exit::Clean);
        });
        let address = address.recv().unwrap();
        Stub { address, peak: shown, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

/// What all connections share.
struct Log {
    script: Script,
    address: SocketAddr,
    produced: Cell<u64>,
    partitions: RefCell<Vec<(i64, Vec<Bytes>)>>,
    appended: Event,
    stalled: Cell<Option<runtime::time::Instant>>,
    under_way: Cell<usize>,
    peak: Arc<AtomicUsize>,
}

impl Log {
    fn new(script: Script, address: SocketAddr, peak: Arc<AtomicUsize>) -> Log {
        let partitions = (0..PARTITIONS).map(|_| (0, Vec::new())).collect();
        Log {
            script,
            address,
            produced: Cell::new(0),
            partitions: RefCell::new(partitions),
            appended: Event::new(),
            stalled: Cell::new(None),
            under_way: Cell::new(0),
            peak,
        }
    }

    /// What becomes of the request that has come.
    fn act(&self) -> Act {
        self.under_way.set(self.under_way.get() + 1);
        self.peak.fetch_max(self.under_way.get(), Ordering::Relaxed);
        let number = self.produced.replace(self.produced.get() + 1);
        (self.script)(number)
    }

    /// Waits as long as nothing is received.
    async fn stall(&self) {
        if let Some(until) = self.stalled.get() {
            runtime::time::sleep_until(until).await;
        }
    }

    fn on_answered(&self) {
        self.under_way.set(self.under_way.get() - 1);
    }

    fn append(&self, partition: i32, records: Bytes) {
        let mut partitions = self.partitions.borrow_mut();
        let (end, batches) = &mut partitions[partition as usize];
        for batch in Batches::of(records) {
            let (header, bytes) = batch.unwrap();
            let mut bytes = bytes.to_vec();
            set_base_offset(&mut bytes, *end);
            *end += i64::from(header.count);
            batches.push(bytes.into());
        }
        self.appended.notify_all();
    }

    fn read(&self, partition: i32, offset: i64) -> (i64, Bytes) {
        let partitions = self.partitions.borrow();
        let (end, batches) = &partitions[partition as usize];
        let from = batches
            .iter()
            .skip_while(|batch| BatchHeader::parse(batch).unwrap().next_offset() <= offset);
        let bytes: Vec<u8> = from.take(16).flatten().copied().collect();
        (*end, bytes.into())
    }
}

async fn accept(listener: Listener, log: Rc<Log>) {
    loop {
        let conn = listener.accept().await.unwrap();
        runtime::task::spawn(serve(conn, Rc::clone(&log)));
    }
}

/// Everything of a connection that its tasks share.
#[derive(Clone)]
struct Session {
    log: Rc<Log>,
    answers: Queue<Vec<Bytes>>,
    held_back: Rc<RefCell<VecDeque<Vec<Bytes>>>>,
}

async fn serve(conn: Conn, log: Rc<Log>) {
    let (reader, mut writer): (Reader, Writer) = conn.split();
    let closer = reader.closer();
    let answers: Queue<Vec<Bytes>> = Queue::bounded(1024);
    let session = Session { log, answers: answers.clone(), held_back: Rc::default() };
    runtime::task::spawn(async move {
        while let Some(parts) = answers.pop().await {
            if writer.send(&parts).await.is_err() {
                return;
            }
        }
        closer.close();
    });
    receive(reader, &session).await;
    session.answers.close();
}

async fn receive(mut reader: Reader, session: &Session) {
    let mut buffer = BytesMut::with_capacity(1 << 20);
    loop {
        while let Some(size) = buffer.first_chunk::<4>() {
            let size = u32::from_be_bytes(*size) as usize;
            if buffer.len() < 4 + size {
                break;
            }
            buffer.advance(4);
            let frame = buffer.split_to(size).freeze();
            if !handle(frame, session).await {
                return;
            }
        }
        buffer.reserve(1 << 20);
        if !matches!(reader.read_buf(&mut buffer, 1 << 20).await, Ok(got) if got > 0) {
            return;
        }
    }
}

/// Whether the connection goes on.
async fn handle(frame: Bytes, session: &Session) -> bool {
    let mut decoder = Decoder::new(frame);
    let header = RequestHeader::decode(&mut decoder).unwrap();
    let key = ApiKey::from_wire(header.api_key).unwrap();
    match key {
        ApiKey::Produce => return produce(&header, decoder, session).await,
        ApiKey::ApiVersions => answer(session, &header, &api_versions()).await,
        ApiKey::Metadata => answer(session, &header, &metadata(session.log.address)).await,
        ApiKey::InitProducerId => {
            let identity = InitProducerIdResponse { producer_id: 9, ..Default::default() };
            answer(session, &header, &identity).await;
        }
        ApiKey::ListOffsets => {
            let request = ListOffsetsRequest::decode(&mut decoder, header.api_version).unwrap();
            answer(session, &header, &list_offsets(&request, &session.log)).await;
        }
        ApiKey::Fetch => {
            let request = FetchRequest::decode(&mut decoder, header.api_version).unwrap();
            let fetched = fetch(&request, &session.log).await;
            answer(session, &header, &fetched).await;
        }
        ApiKey::FindCoordinator => {
            let request = FindCoordinatorRequest::decode(&mut decoder, header.api_version).unwrap();
            answer(session, &header, &coordinators(&request)).await;
        }
        ApiKey::OffsetFetch => {
            let request = OffsetFetchRequest::decode(&mut decoder, header.api_version).unwrap();
            answer(session, &header, &never_committed(&request)).await;
        }
        ApiKey::OffsetCommit => return commit(&header, decoder, session).await,
        other => panic!("nobody asked for {}", other.name()),
    }
    true
}

async fn produce(header: &RequestHeader, mut decoder: Decoder, session: &Session) -> bool {
    let log = &session.log;
    log.stall().await;
    let request = ProduceRequest::decode(&mut decoder, header.api_version).unwrap();
    let act = log.act();
    let error = if let Act::Refuse(error) = act { error } else { ErrorCode::NONE };
    if error == ErrorCode::NONE {
        for partition in request.topic_data.iter().flat_map(|topic| &topic.partition_data) {
            let records = partition.records.clone().unwrap().into_bytes();
            assert!(protocol::batch::header::crc_ok(&records), "a batch with a wrong checksum");
            log.append(partition.index, records);
        }
    }
    if request.acks == 0 {
        log.on_answered();
        return true;
    }
    play(act, encode(header, &produced(&request, error)), session).await
}

async fn commit(header: &RequestHeader, mut decoder: Decoder, session: &Session) -> bool {
    let log = &session.log;
    log.stall().await;
    let request = OffsetCommitRequest::decode(&mut decoder, header.api_version).unwrap();
    let act = log.act();
    let error = if let Act::Refuse(error) = act { error } else { ErrorCode::NONE };
    play(act, encode(header, &committed(&request, error)), session).await
}

/// Lets an answer leave as the script wants it. Whether the connection goes on.
async fn play(act: Act, parts: Vec<Bytes>, session: &Session) -> bool {
    match act {
        Act::Answer(delay) if delay > Duration::ZERO => {
            let session = session.clone();
            runtime::task::spawn(async move {
                sleep(delay).await;
                session.log.on_answered();
                // The client may be gone.
                let _ = session.answers.push(parts).await;
            });
            return true;
        }
        Act::Stall(pause) => {
            session.log.stalled.set(Some(now() + pause));
            sleep(pause).await;
        }
        Act::Hang => return false,
        Act::Swap => {
            session.held_back.borrow_mut().push_back(parts);
            return true;
        }
        Act::Answer(_) | Act::Refuse(_) => {}
    }
    session.log.on_answered();
    push(session, parts).await;
    true
}

fn committed(request: &OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
        topic_id: topic.topic_id,
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|it| OffsetCommitResponsePartition {
                partition_index: it.partition_index,
                error_code,
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

/// By the last letter of their names.
fn coordinators(request: &FindCoordinatorRequest) -> FindCoordinatorResponse {
    let coordinator = |key: &Str| {
        let node_id = 1 + i32::from(key.bytes().last().unwrap() % 2);
        Coordinator { key: key.clone(), node_id, ..Default::default() }
    };
    let coordinators = request.coordinator_keys.iter().map(coordinator).collect();
    FindCoordinatorResponse { coordinators, ..Default::default() }
}

fn never_committed(request: &OffsetFetchRequest) -> OffsetFetchResponse {
    let none = |group: &OffsetFetchRequestGroup| OffsetFetchResponseGroup {
        group_id: group.group_id.clone(),
        ..Default::default()
    };
    OffsetFetchResponse { groups: request.groups.iter().map(none).collect(), ..Default::default() }
}

async fn push(session: &Session, parts: Vec<Bytes>) {
    // The client may be gone.
    let _ = session.answers.push(parts).await;
    let held_back: Vec<_> = session.held_back.borrow_mut().drain(..).collect();
    for parts in held_back {
        session.log.on_answered();
        let _ = session.answers.push(parts).await;
    }
}

async fn answer<R: Message>(session: &Session, header: &RequestHeader, body: &R) {
    push(session, encode(header, body)).await;
}

fn encode<R: Message>(header: &RequestHeader, body: &R) -> Vec<Bytes> {
    let mut encoder = Encoder::framed(256);
    let head = ResponseHeader { correlation_id: header.correlation_id };
    head.encode(&mut encoder, R::KEY, header.api_version);
    body.encode(&mut encoder, header.api_version);
    encoder.finish()
}

fn api_versions() -> ApiVersionsResponse {
    let served = [
        ApiKey::Produce,
        ApiKey::Fetch,
        ApiKey::ListOffsets,
        ApiKey::Metadata,
        ApiKey::ApiVersions,
        ApiKey::InitProducerId,
        ApiKey::FindCoordinator,
        ApiKey::OffsetFetch,
        ApiKey::OffsetCommit,
    ];
    let row = |key: &ApiKey| {
        let range = key.spec().served;
        ApiVersion { api_key: key.number(), min_version: range.min, max_version: range.max }
    };
    ApiVersionsResponse { api_keys: served.iter().map(row).collect(), ..Default::default() }
}

fn metadata(address: SocketAddr) -> MetadataResponse {
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: 1,
        ..Default::default()
    };
    let topic = MetadataResponseTopic {
        name: Some(Str::from_static(TOPIC)),
        topic_id: TOPIC_ID,
        partitions: (0..PARTITIONS).map(partition).collect(),
        ..Default::default()
    };
    let broker = |node_id| MetadataResponseBroker {
        node_id,
        host: Str::from(address.ip().to_string()),
        port: i32::from(address.port()),
        ..Default::default()
    };
    MetadataResponse {
        brokers: vec![broker(1), broker(2)],
        topics: vec![topic],
        ..Default::default()
    }
}

fn produced(request: &ProduceRequest, error_code: ErrorCode) -> ProduceResponse {
    let partition = |index| PartitionProduceResponse { index, error_code, ..Default::default() };
    let topics = request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic.partition_data.iter().map(|p| partition(p.index)).collect(),
    });
    ProduceResponse { responses: topics.collect(), ..Default::default() }
}

fn list_offsets(request: &ListOffsetsRequest, log: &Log) -> ListOffsetsResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| ListOffsetsPartitionResponse {
            partition_index: asked.partition_index,
            offset: match asked.timestamp {
                -1 => log.partitions.borrow()[asked.partition_index as usize].0,
                _ => 0,
            },
            ..Default::default()
        });
        ListOffsetsTopicResponse { name: topic.name.clone(), partitions: partitions.collect() }
    });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

/// Without sessions.
async fn fetch(request: &FetchRequest, log: &Log) -> FetchResponse {
    let deadline = now() + Duration::from_millis(request.max_wait_ms.unsigned_abs().into());
    loop {
        let appended = log.appended.listen();
        let mut found = 0;
        let responses = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let (end, records) = log.read(asked.partition, asked.fetch_offset);
                found += records.len();
                PartitionData {
                    partition_index: asked.partition,
                    high_watermark: end,
                    log_start_offset: 0,
                    records: Some(records.into()),
                    ..Default::default()
                }
            });
            let partitions = partitions.collect();
            FetchableTopicResponse {
                topic: topic.topic.clone(),
                topic_id: topic.topic_id,
                partitions,
            }
        });
        let responses: Vec<_> = responses.collect();
        if found > 0 || now() >= deadline {
            return FetchResponse { responses, ..Default::default() };
        }
        // At the deadline the loop answers with what there is.
        let _ = within(deadline, appended).await;
    }
}
