//! Produces through librdkafka for a while, as its rdkafka_performance does: for perf/compare.
//!
//! Arguments: BOOTSTRAP TOPIC RECORD_BYTES SECONDS. A quarter of the time more comes first and does
//! not count. Prints `N records, N MB/s, p50 N ms, p99 N ms`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("rdkafka-load: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, topic, bytes, seconds] = arguments.as_slice() else {
        return Err("give BOOTSTRAP TOPIC RECORD_BYTES SECONDS".to_owned());
    };
    let bytes: usize = bytes.parse().map_err(|_| format!("'{bytes}' is no size"))?;
    let seconds: f64 = seconds.parse().map_err(|_| format!("'{seconds}' is no time"))?;
    let counted_from = Instant::now() + Duration::from_secs_f64(seconds / 4.0);
    let end = counted_from + Duration::from_secs_f64(seconds);
    let delivered = Arc::new(Delivered::new(counted_from, end));
    let producer: ThreadedProducer<Context> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("acks", "all")
        .create_with_context(Context(Arc::clone(&delivered)))
        .map_err(|why| why.to_string())?;
    let value = vec![7u8; bytes];
    while Instant::now() < end {
        let record: BaseRecord<(), [u8], _> =
            BaseRecord::with_opaque_to(topic, Box::new(Instant::now()));
        match producer.send(record.payload(&value)) {
            Ok(()) => {}
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                producer.poll(Duration::from_millis(1));
            }
            Err((why, _)) => return Err(why.to_string()),
        }
    }
    producer.flush(Duration::from_secs(30)).map_err(|why| why.to_string())?;
    delivered.print(bytes, seconds)
}

/// How long each record took that was delivered within the time.
struct Delivered {
    counted_from: Instant,
    end: Instant,
    micros: Mutex<Vec<u64>>,
    failed: AtomicU64,
}

impl Delivered {
    fn new(counted_from: Instant, end: Instant) -> Delivered {
        Delivered { counted_from, end, micros: Mutex::default(), failed: AtomicU64::new(0) }
    }

    fn on_delivered(&self, sent: Instant) {
        let now = Instant::now();
        if (self.counted_from..self.end).contains(&now) {
            let mut micros = self.micros.lock().unwrap_or_else(PoisonError::into_inner);
            micros.push(now.duration_since(sent).as_micros() as u64);
        }
    }

    fn print(&self, bytes: usize, seconds: f64) -> Result<(), String> {
        let failed = self.failed.load(Ordering::Relaxed);
        if failed > 0 {
            return Err(format!("{failed} records were not delivered"));
        }
        let mut micros = self.micros.lock().unwrap_or_else(PoisonError::into_inner);
        micros.sort_unstable();
        let count = micros.len();
        let at = |share: f64| micros.get((count as f64 * share) as usize).copied().unwrap_or(0);
        println!(
            "{count} records, {:.3} MB/s, p50 {:.3} ms, p99 {:.3} ms",
            count as f64 * bytes as f64 / seconds / 1e6,
            at(0.5) as f64 / 1e3,
            at(0.99) as f64 / 1e3,
        );
        Ok(())
    }
}

struct Context(Arc<Delivered>);

impl ClientContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<Instant>;

    fn delivery(&self, result: &DeliveryResult, sent: Box<Instant>) {
        match result {
            Ok(_) => self.0.on_delivered(*sent),
            Err(_) => {
                self.0.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
