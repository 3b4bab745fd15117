//! rdkafka against a broker: every codec there and back, and the life of a topic.
//!
//! Arguments: BOOTSTRAP RECORDS. Prints `ok CASE` or `FAILED CASE: why`, and fails if one failed.
//! Or: member, and what a member of a group is told.

mod member;

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Offset, TopicPartitionList};

const PARTITIONS: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome = Result<(), String>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "member") {
        return member::live(&words[1..]);
    }
    let mut arguments = words.into_iter();
    let bootstrap = arguments.next().expect("BOOTSTRAP");
    let records: usize = arguments.next().and_then(|n| n.parse().ok()).expect("RECORDS");
    let suite =
        Suite { admin: client(&bootstrap).create().expect("an admin client"), bootstrap, records };
    let mut failed = 0;
    let mut report = |name: String, outcome: Outcome| match outcome {
        Ok(()) => println!("ok {name}"),
        Err(why) => {
            failed += 1;
            println!("FAILED {name}: {}", why.replace('\n', " "));
        }
    };
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        report(format!("{codec}: there and back"), suite.there_and_back(codec));
    }
    report("the life of a topic".into(), suite.life_of_a_topic());
    std::process::exit(i32::from(failed > 0));
}

fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("group.id", "none");
    config
}

struct Suite {
    admin: AdminClient<DefaultClientContext>,
    bootstrap: String,
    records: usize,
}

/// What record `index` of a run consists of.
struct Expected {
    partition: i32,
    key: Option<String>,
    value: Option<String>,
    headers: OwnedHeaders,
}

fn expected(index: usize, codec: &str) -> Expected {
    let text = index.to_string();
    let headers = [("index", text.as_str()), ("codec", codec), ("empty", "")];
    Expected {
        partition: i32::try_from(index % PARTITIONS).expect("a small number"),
        key: (index % 97 != 0).then(|| format!("key-{index}")),
        value: (index % 97 != 1).then(|| format!("value-{index}-{}", "x".repeat(37 * index % 300))),
        headers: headers.iter().fold(OwnedHeaders::new(), |all, (key, value)| {
            all.insert(Header { key, value: Some(value.as_bytes()) })
        }),
    }
}

#[derive(Default)]
struct Deliveries {
    done: AtomicUsize,
    failed: AtomicUsize,
}

#[derive(Clone, Default)]
struct Counting(Arc<Deliveries>);

impl ClientContext for Counting {}

impl ProducerContext for Counting {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let counter = if result.is_ok() { &self.0.done } else { &self.0.failed };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

impl Suite {
    fn there_and_back(&self, codec: &str) -> Outcome {
        let topic = format!("rdkafka-{codec}-{}", unique());
        self.create(&topic, NewTopic::new(&topic, 6, TopicReplication::Fixed(1)))?;
        self.produce(&topic, codec)?;
        self.read_back(&topic, codec)?;
        self.delete(&topic)
    }

    fn produce(&self, topic: &str, codec: &str) -> Outcome {
        let counting = Counting::default();
        let producer: ThreadedProducer<Counting> = client(&self.bootstrap)
            .set("compression.type", codec)
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            .create_with_context(counting.clone())
            .map_err(text)?;
        for index in 0..self.records {
            let wanted = expected(index, codec);
            let mut record = BaseRecord::<String, String>::to(topic)
                .partition(wanted.partition)
                .headers(wanted.headers);
            record.key = wanted.key.as_ref();
            record.payload = wanted.value.as_ref();
            while let Err((error, refused)) = producer.send(record) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(text(error));
                }
                record = refused;
                producer.poll(Duration::from_millis(50));
            }
        }
        producer.flush(PATIENCE).map_err(text)?;
        let (done, failed) = (&counting.0.done, &counting.0.failed);
        same(
            "delivered",
            (done.load(Ordering::SeqCst), failed.load(Ordering::SeqCst)),
            (self.records, 0),
        )
    }

    fn read_back(&self, topic: &str, codec: &str) -> Outcome {
        let consumer: BaseConsumer = client(&self.bootstrap)
            .set("enable.auto.commit", "false")
            .set("check.crcs", "true")
            .create()
            .map_err(text)?;
        let mut assignment = TopicPartitionList::new();
        for partition in 0..6 {
            assignment.add_partition_offset(topic, partition, Offset::Beginning).map_err(text)?;
        }
        consumer.assign(&assignment).map_err(text)?;
        let mut nexts = [0usize; PARTITIONS];
        for total in 0..self.records {
            let message = consumer
                .poll(PATIENCE)
                .ok_or_else(|| format!("silence after {total} records"))?
                .map_err(text)?;
            let partition = usize::try_from(message.partition()).map_err(|e| e.to_string())?;
            same("offset", message.offset(), nexts[partition] as i64)?;
            compare(&message, &expected(nexts[partition] * PARTITIONS + partition, codec))?;
            nexts[partition] += 1;
        }
        for (partition, next) in nexts.iter().enumerate() {
            let (low, high) =
                consumer.fetch_watermarks(topic, partition as i32, PATIENCE).map_err(text)?;
            same("watermarks", (low, high), (0, *next as i64))?;
        }
        Ok(())
    }

    fn life_of_a_topic(&self) -> Outcome {
        let topic = format!("rdkafka-life-{}", unique());
        let new =
            NewTopic::new(&topic, 6, TopicReplication::Fixed(1)).set("retention.ms", "3600000");
        self.create(&topic, new)?;
        let nodes = self.metadata(None)?.0;
        let spread = self.metadata(Some(&topic))?.1.into_iter().collect::<BTreeSet<_>>().len();
        same("nodes that lead", spread, nodes.min(PARTITIONS))?;
        same("retention.ms", self.config(&topic, "retention.ms")?.as_deref(), Some("3600000"))?;
        let alter =
            AlterConfig::new(ResourceSpecifier::Topic(&topic)).set("max.message.bytes", "65536");
        let altered =
            wait(self.admin.alter_configs([&alter], &AdminOptions::new())).map_err(text)?;
        altered.into_iter().try_for_each(|each| each.map(drop).map_err(|e| format!("{e:?}")))?;
        until("the new config shows", || {
            Ok(self.config(&topic, "max.message.bytes")?.as_deref() == Some("65536"))
        })?;
        let more = NewPartitions::new(&topic, 9);
        let grown =
            wait(self.admin.create_partitions([&more], &AdminOptions::new())).map_err(text)?;
        grown.into_iter().try_for_each(|each| each.map(drop).map_err(|e| format!("{e:?}")))?;
        until("the new partitions have leaders", || Ok(self.metadata(Some(&topic))?.1.len() == 9))?;
        let again = NewTopic::new(&topic, 1, TopicReplication::Fixed(1));
        let twice = wait(self.admin.create_topics([&again], &AdminOptions::new())).map_err(text)?;
        let refused = twice.into_iter().next().and_then(Result::err).map(|(_, code)| code);
        same("created twice", refused, Some(RDKafkaErrorCode::TopicAlreadyExists))?;
        self.delete(&topic)?;
        until("the topic is gone", || {
            let all = self.admin.inner().fetch_metadata(None, PATIENCE).map_err(text)?;
            Ok(all.topics().iter().all(|each| each.name() != topic))
        })
    }

    fn create(&self, topic: &str, new: NewTopic<'_>) -> Outcome {
        let partitions = usize::try_from(new.num_partitions).map_err(|e| e.to_string())?;
        let created = wait(self.admin.create_topics([&new], &AdminOptions::new())).map_err(text)?;
        created.into_iter().try_for_each(|each| each.map(drop).map_err(|e| format!("{e:?}")))?;
        until("the topic has leaders", || Ok(self.metadata(Some(topic))?.1.len() == partitions))
    }

    fn delete(&self, topic: &str) -> Outcome {
        let gone = wait(self.admin.delete_topics(&[topic], &AdminOptions::new())).map_err(text)?;
        gone.into_iter().try_for_each(|each| each.map(drop).map_err(|e| format!("{e:?}")))
    }

    /// The number of nodes, and the leaders of a topic's partitions that have one.
    fn metadata(&self, topic: Option<&str>) -> Result<(usize, Vec<i32>), String> {
        let found = self.admin.inner().fetch_metadata(topic, PATIENCE).map_err(text)?;
        let partitions = found.topics().iter().flat_map(|each| each.partitions());
        let led = partitions.map(|each| each.leader()).filter(|leader| *leader >= 0);
        Ok((found.brokers().len(), if topic.is_some() { led.collect() } else { Vec::new() }))
    }

    fn config(&self, topic: &str, name: &str) -> Result<Option<String>, String> {
        let resource = ResourceSpecifier::Topic(topic);
        let found = wait(self.admin.describe_configs([&resource], &AdminOptions::new()));
        let first = found.map_err(text)?.into_iter().next().ok_or("no resource")?;
        let resource = first.map_err(|e| format!("{e:?}"))?;
        let values: HashMap<_, _> =
            resource.entries.into_iter().map(|each| (each.name, each.value)).collect();
        Ok(values.get(name).cloned().flatten())
    }
}

fn compare(got: &BorrowedMessage<'_>, wanted: &Expected) -> Outcome {
    same("key", got.key(), wanted.key.as_ref().map(String::as_bytes))?;
    same("value", got.payload(), wanted.value.as_ref().map(String::as_bytes))?;
    let headers = got.headers().ok_or("no headers")?;
    same("headers", headers.count(), wanted.headers.count())?;
    for (left, right) in headers.iter().zip(wanted.headers.iter()) {
        same("header", (left.key, left.value), (right.key, right.value))?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Outcome {
    if got == wanted { Ok(()) } else { Err(format!("{what}: wanted {wanted:?}, got {got:?}")) }
}

fn text(error: KafkaError) -> String {
    error.to_string()
}

fn unique() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos())
}

fn until(what: &str, condition: impl Fn() -> Result<bool, String>) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while !condition()? {
        if Instant::now() > deadline {
            return Err(format!("not within {PATIENCE:?}: {what}"));
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    Ok(())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread; the clients' own threads complete it.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
