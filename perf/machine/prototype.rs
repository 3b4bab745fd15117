//! The least that can be called a durable log: frames in, aligned durable writes, answers out.
//!
//! It speaks just enough of the protocol for `bench produce`, and checks nothing: no checksum, no
//! offsets, no sequence numbers, no rights. One file per partition, one write in flight per file,
//! everything that arrives meanwhile goes with the next; answers leave in the order of requests.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use bytes::{Buf, Bytes, BytesMut};
use clap::{Command, FromArgMatches, Subcommand};
use protocol::messages::api_versions::{ApiVersion, ApiVersionsResponse};
use protocol::messages::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use protocol::messages::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::messages::produce::{
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use protocol::{ApiKey, Decoder, Encoder, Message, RequestHeader, ResponseHeader, Str, Uuid};
use runtime::file::{ALIGNMENT, AlignedBuf, File, Mode};
use runtime::local::{Event, Queue};
use runtime::mesh::{OneshotSender, oneshot};
use runtime::net::{Conn, Listener, Reader, Writer};
use runtime::{Config, Exit};

use super::{Finding, Place};
use crate::options::Bench;
use crate::run;

/// A load that it gets; as in `perf/compare`, but for those that bound other rows.
struct Load {
    /// What the findings are called.
    name: &'static str,
    partitions: usize,
    mode: Mode,
    arguments: &'static str,
}

const LOADS: &[Load] = &[
    Load::durable("8 x 5 x 64 KiB", 8, "--connections 8 --batch-bytes 64KiB"),
    Load::durable("16 x 5 x 16 KiB", 16, "--connections 16 --batch-bytes 16KiB"),
    Load::durable(
        "40 x 2 x 25 x 16 KiB",
        1000,
        "--connections 40 --in-flight 2 --batch-bytes 16KiB --partitions-per-request 25 \
         --warm-up 4s",
    ),
    Load::durable("64 x 5 x 1 KiB", 64, "--connections 64 --records-per-batch 1"),
    Load::durable("64 x 1 x 1 KiB", 64, "--connections 64 --in-flight 1 --records-per-batch 1"),
    Load::durable("1 x 1 x 1 KiB", 1, "--connections 1 --in-flight 1 --records-per-batch 1"),
    Load {
        name: "1 x 1 x 1 KiB to the page cache",
        mode: Mode::Buffered,
        ..Load::durable("", 1, "--connections 1 --in-flight 1 --records-per-batch 1")
    },
];

/// Times as long as other measurements: a disk takes a while to show what it does in the mean.
const TIMES_AS_LONG: f64 = 3.0;

impl Load {
    const fn durable(name: &'static str, partitions: usize, arguments: &'static str) -> Load {
        Load { name, partitions, mode: Mode::DirectSync, arguments }
    }
}

pub(super) fn measure(place: &Place, folder: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut found = Vec::new();
    for load in LOADS {
        let config = Config { huge_pages: HUGE_PAGE_BYTES_MAX, ..place.broker() };
        let prototype = Prototype::start(config, folder, load.partitions, load.mode)?;
        let line = format!(
            "bench produce {} --topic bare --bootstrap {} --load-cpus {} --duration {}s",
            load.arguments,
            prototype.address(),
            place.load_cpu,
            place.seconds.as_secs_f64() * TIMES_AS_LONG
        );
        let command = Bench::augment_subcommands(Command::new("bench"));
        let matches = command.try_get_matches_from(line.split_whitespace())?;
        let Bench::Produce(args) = Bench::from_arg_matches(&matches)? else {
            return Err(anyhow!("'{line}' is no load"));
        };
        let outcome = run::produce(&args)?;
        let (sent, seconds) = (outcome.totals.sent, outcome.seconds());
        let median = outcome.totals.answers.value_at_quantile(0.5) as f64 / 1e6;
        let title = format!("bare prototype, {}", load.name);
        let requests = sent.requests as f64 / seconds;
        found.push(Finding::new(format!("{title}, requests"), requests, "1/s"));
        let bytes = sent.bytes as f64 / seconds / 1e6;
        found.push(Finding::new(format!("{title}, bytes"), bytes, "MB/s"));
        found.push(Finding::new(format!("{title}, p50"), median, "ms"));
    }
    Ok(found)
}

/// A server on an executor of its own; ends when dropped.
pub(super) struct Server {
    pub address: SocketAddr,
    stop: Option<OneshotSender<()>>,
    thread: Option<JoinHandle<Exit>>,
}

impl Server {
    /// `serve` gets the listener and runs until the end.
    pub fn start<F, Fut>(config: Config, serve: F) -> anyhow::Result<Server>
    where
        F: Fn(Listener) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let (stop, stopped) = oneshot::<()>();
        let stopped = Arc::new(Mutex::new(Some(stopped)));
        let (told, address) = mpsc::channel();
        let main = move |_core: runtime::Core<()>| {
            let (serve, told) = (serve.clone(), told.clone());
            let stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move {
                let listener = match Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))) {
                    Ok(listener) => listener,
                    Err(why) => return Exit::Failed(format!("cannot listen: {why}")),
                };
                if told.send(listener.local_addr()).is_err() {
                    return Exit::Clean;
                }
                runtime::task::spawn(serve(listener));
                if let Some(stopped) = stopped {
                    // Whether told or left alone: it is over.
                    let _over = stopped.await;
                }
                Exit::Clean
            }
        };
        let thread = std::thread::spawn(move || runtime::run(config, main));
        let address = address.recv().context("the server did not start")?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it has ended the process already.
            let _exit = thread.join();
        }
    }
}

/// The prototype, running.
pub struct Prototype {
    server: Server,
    folder: PathBuf,
}

impl Prototype {
    /// With files of its own below `folder`.
    pub fn start(
        config: Config,
        folder: &Path,
        partitions: usize,
        mode: Mode,
    ) -> anyhow::Result<Prototype> {
        let folder = folder.join("prototype");
        std::fs::create_dir_all(&folder)?;
        let files = folder.clone();
        let server = Server::start(config, move |listener| {
            let files = files.clone();
            async move {
                let address = listener.local_addr();
                match Bare::open(&files, partitions, mode, address).await {
                    Ok(bare) => accept(listener, Rc::new(bare)).await,
                    Err(why) => runtime::abort(&format!("the prototype: {why:#}")),
                }
            }
        })?;
        Ok(Prototype { server, folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }
}

impl Drop for Prototype {
    fn drop(&mut self) {
        // What cannot be removed here is removed with the folder above.
        let _removed = std::fs::remove_dir_all(&self.folder);
    }
}

struct Bare {
    address: SocketAddr,
    partitions: Vec<Rc<Partition>>,
}

impl Bare {
    async fn open(
        folder: &Path,
        partitions: usize,
        mode: Mode,
        address: SocketAddr,
    ) -> anyhow::Result<Bare> {
        let ahead = (ALLOCATED / partitions as u64).min(ALLOCATED_AHEAD);
        let mut opened = Vec::new();
        for index in 0..partitions {
            let path = folder.join(index.to_string());
            let file = File::create_new(path, mode).await?;
            let partition = Rc::new(Partition::default());
            runtime::task::spawn(write(file, ahead, Rc::clone(&partition)));
            opened.push(partition);
        }
        Ok(Bare { address, partitions: opened })
    }
}

/// A log without anything around it.
#[derive(Default)]
struct Partition {
    pending: RefCell<Vec<Bytes>>,
    appended: Cell<u64>,
    durable: Cell<u64>,
    arrived: Event,
    committed: Event,
}

impl Partition {
    /// The position that has to be durable before the answer leaves.
    fn append(&self, bytes: Bytes) -> u64 {
        self.appended.set(self.appended.get() + bytes.len() as u64);
        self.pending.borrow_mut().push(bytes);
        self.arrived.notify_all();
        self.appended.get()
    }

    async fn durable(&self, position: u64) {
        loop {
            let committed = self.committed.listen();
            if self.durable.get() >= position {
                return;
            }
            committed.await;
        }
    }
}

async fn write(file: File, ahead: u64, partition: Rc<Partition>) {
    let mut tail: Vec<u8> = Vec::with_capacity(ALIGNMENT);
    let (mut offset, mut allocated) = (0u64, 0u64);
    loop {
        let arrived = partition.arrived.listen();
        let taken = take(&partition);
        if taken.is_empty() {
            arrived.await;
            continue;
        }
        let bytes = tail.len() + taken.iter().map(Bytes::len).sum::<usize>();
        let mut buffer = AlignedBuf::with_room(bytes);
        buffer.put(&tail);
        taken.iter().for_each(|chunk| buffer.put(chunk));
        let filled = buffer.len();
        buffer.zero_to(buffer.room());
        let whole = filled / ALIGNMENT * ALIGNMENT;
        tail.clear();
        tail.extend_from_slice(&buffer[whole..filled]);
        let end = offset + buffer.len() as u64;
        let result = async {
            if end > allocated {
                allocated = end + ahead;
                file.preallocate(allocated).await?;
            }
            file.write_at(offset, buffer.freeze()).await
        };
        if let Err(why) = result.await {
            runtime::abort(&format!("the prototype: {why}"));
        }
        offset += whole as u64;
        partition.durable.set(offset + tail.len() as u64);
        partition.committed.notify_all();
    }
}

/// What waits, up to the bytes of one write.
fn take(partition: &Partition) -> Vec<Bytes> {
    let mut pending = partition.pending.borrow_mut();
    let mut bytes = 0;
    let count = pending.iter().take_while(|chunk| {
        let fits = bytes == 0 || bytes + chunk.len() <= WRITE_BYTES_MAX;
        bytes += chunk.len();
        fits
    });
    let count = count.count();
    pending.drain(..count).collect()
}

async fn accept(listener: Listener, bare: Rc<Bare>) {
    while let Ok(conn) = listener.accept().await {
        runtime::task::spawn(serve(conn, Rc::clone(&bare)));
    }
}

/// An answer, and what it waits for.
struct Answer {
    parts: Vec<Bytes>,
    waits_for: Vec<(Rc<Partition>, u64)>,
}

async fn serve(conn: Conn, bare: Rc<Bare>) {
    let (reader, writer) = conn.split();
    let answers: Queue<Answer> = Queue::bounded(ANSWERS_MAX);
    runtime::task::spawn(respond(writer, answers.clone()));
    receive(reader, &bare, &answers).await;
    answers.close();
}

async fn respond(mut writer: Writer, answers: Queue<Answer>) {
    while let Some(answer) = answers.pop().await {
        for (partition, position) in answer.waits_for {
            partition.durable(position).await;
        }
        if writer.send(&answer.parts).await.is_err() {
            return answers.close();
        }
    }
}

async fn receive(mut reader: Reader, bare: &Bare, answers: &Queue<Answer>) {
    let mut buffer = BytesMut::with_capacity(RECEIVE_BYTES);
    loop {
        while let Some(size) = buffer.first_chunk::<4>() {
            let size = u32::from_be_bytes(*size) as usize;
            if buffer.len() < 4 + size {
                break;
            }
            buffer.advance(4);
            let frame = buffer.split_to(size).freeze();
            let Some(answer) = handle(frame, bare) else { return };
            if answers.push(answer).await.is_err() {
                return;
            }
        }
        buffer.reserve(RECEIVE_BYTES);
        if !matches!(reader.read_buf(&mut buffer, RECEIVE_BYTES).await, Ok(got) if got > 0) {
            return;
        }
    }
}

/// `None` for what it does not understand.
fn handle(frame: Bytes, bare: &Bare) -> Option<Answer> {
    let mut decoder = Decoder::new(frame);
    let header = RequestHeader::decode(&mut decoder).ok()?;
    match ApiKey::from_wire(header.api_key)? {
        ApiKey::ApiVersions => Some(at_once(&header, &api_versions())),
        ApiKey::Metadata => Some(at_once(&header, &metadata(bare))),
        ApiKey::ListOffsets => {
            let request = ListOffsetsRequest::decode(&mut decoder, header.api_version).ok()?;
            Some(at_once(&header, &list_offsets(&request)))
        }
        ApiKey::Produce => {
            let request = ProduceRequest::decode(&mut decoder, header.api_version).ok()?;
            Some(produce(&header, request, bare))
        }
        _ => None,
    }
}

fn produce(header: &RequestHeader, request: ProduceRequest, bare: &Bare) -> Answer {
    let mut waits_for = Vec::new();
    let topics = request.topic_data.into_iter().map(|topic| {
        let partitions = topic.partition_data.into_iter().map(|data| {
            let partition = &bare.partitions[data.index as usize % bare.partitions.len()];
            let bytes = data.records.unwrap_or_default().into_bytes();
            waits_for.push((Rc::clone(partition), partition.append(bytes)));
            PartitionProduceResponse { index: data.index, ..PartitionProduceResponse::default() }
        });
        let partition_responses = partitions.collect();
        TopicProduceResponse { name: topic.name, topic_id: topic.topic_id, partition_responses }
    });
    let response = ProduceResponse { responses: topics.collect(), ..ProduceResponse::default() };
    Answer { parts: at_once(header, &response).parts, waits_for }
}

fn at_once<R: Message>(header: &RequestHeader, body: &R) -> Answer {
    let mut encoder = Encoder::framed(ANSWER_BYTES_GUESS);
    let head = ResponseHeader { correlation_id: header.correlation_id };
    head.encode(&mut encoder, R::KEY, header.api_version);
    body.encode(&mut encoder, header.api_version);
    Answer { parts: encoder.finish(), waits_for: Vec::new() }
}

fn api_versions() -> ApiVersionsResponse {
    let row = |key: ApiKey| {
        let range = key.spec().served;
        ApiVersion { api_key: key.number(), min_version: range.min, max_version: range.max }
    };
    let served = [ApiKey::Produce, ApiKey::ListOffsets, ApiKey::Metadata, ApiKey::ApiVersions];
    let api_keys = served.map(row).to_vec();
    ApiVersionsResponse { api_keys, ..ApiVersionsResponse::default() }
}

/// Every log is empty for those who ask.
fn list_offsets(request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| ListOffsetsPartitionResponse {
            partition_index: asked.partition_index,
            offset: 0,
            ..ListOffsetsPartitionResponse::default()
        });
        ListOffsetsTopicResponse { name: topic.name.clone(), partitions: partitions.collect() }
    });
    ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }
}

fn metadata(bare: &Bare) -> MetadataResponse {
    let partition = |index: usize| MetadataResponsePartition {
        partition_index: index as i32,
        leader_id: 1,
        ..MetadataResponsePartition::default()
    };
    let topic = MetadataResponseTopic {
        name: Some(Str::from_static("bare")),
        topic_id: Uuid([1; 16]),
        partitions: (0..bare.partitions.len()).map(partition).collect(),
        ..MetadataResponseTopic::default()
    };
    let broker = MetadataResponseBroker {
        node_id: 1,
        host: Str::from(bare.address.ip().to_string()),
        port: i32::from(bare.address.port()),
        rack: None,
    };
    MetadataResponse { brokers: vec![broker], topics: vec![topic], ..MetadataResponse::default() }
}

/// Its large buffers lie in huge pages, as those of a broker do.
const HUGE_PAGE_BYTES_MAX: usize = 512 << 20;
const RECEIVE_BYTES: usize = 256 << 10;
const WRITE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a file, and of all files together, that are allocated before they are needed.
const ALLOCATED_AHEAD: u64 = 16 << 20;
const ALLOCATED: u64 = 4 << 30;
const ANSWERS_MAX: usize = 1024;
const ANSWER_BYTES_GUESS: usize = 128;
