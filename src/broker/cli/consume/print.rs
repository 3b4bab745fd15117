//! Records as text: by a format, or as JSON; counted, and not faster than asked for.

use std::io::{BufWriter, StdoutLock, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::batch::{Batches, HEADER_BYTES, RecordIter, RecordView, decompress};
use serde_json::{Value, json};

use super::ConsumeArgs;
use super::reading::Reading;

/// Prints to standard output.
pub(super) struct Printer<'a> {
    args: &'a ConsumeArgs,
    pub out: BufWriter<StdoutLock<'static>>,
    left: u64,
    /// Records that may be printed now, and when that was counted.
    tokens: f64,
    counted: Instant,
}

impl<'a> Printer<'a> {
    pub fn new(args: &'a ConsumeArgs) -> Printer<'a> {
        Printer {
            args,
            out: BufWriter::new(std::io::stdout().lock()),
            left: args.max_records.unwrap_or(u64::MAX),
            tokens: 1.0,
            counted: Instant::now(),
        }
    }

    /// As many records as wanted are printed.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Whether the rate permits a record now.
    pub fn may_print(&mut self) -> bool {
        let Some(rate) = self.args.rate else { return true };
        let most = (rate * BURST.as_secs_f64()).max(1.0);
        let earned = self.counted.elapsed().as_secs_f64() * rate;
        self.tokens = (self.tokens + earned).min(most);
        self.counted = Instant::now();
        self.tokens >= 1.0
    }

    /// Prints what is to be printed of these batches, as far as it may; `reading` then says where
    /// to go on, and keeps what is left.
    pub fn print(
        &mut self,
        index: i32,
        reading: &mut Reading,
        batches: Bytes,
    ) -> anyhow::Result<()> {
        let mut at = 0;
        for batch in Batches::of(batches.clone()) {
            // The last batch may be cut off by the byte limit.
            let Ok((header, bytes)) = batch else { break };
            let rest = at;
            at += bytes.len();
            if header.is_control() {
                reading.next = reading.next.max(header.last_offset() + 1);
                continue;
            }
            let codec = header.compression().map_err(|id| anyhow::anyhow!("unknown codec {id}"))?;
            let body = decompress(codec, &bytes[HEADER_BYTES..], BODY_BYTES_MAX)?;
            for record in RecordIter::new(&body, header.count) {
                let record = record?;
                let offset = header.base_offset + i64::from(record.offset_delta);
                if offset < reading.next {
                    continue;
                }
                if let Some(end) = reading.end.filter(|end| offset >= *end) {
                    reading.next = end;
                    return Ok(());
                }
                if self.left == 0 || (self.args.rate.is_some() && self.tokens < 1.0) {
                    reading.next = offset;
                    reading.kept = batches.slice(rest..);
                    return Ok(());
                }
                let timestamp = header.record_timestamp(record.timestamp_delta);
                self.write(Place { index, offset, timestamp }, record)?;
                self.left -= 1;
                self.tokens -= 1.0;
                reading.next = offset + 1;
            }
            reading.next = reading.next.max(header.last_offset() + 1);
        }
        Ok(())
    }

    fn write(&mut self, place: Place, record: RecordView<'_>) -> anyhow::Result<()> {
        if self.args.json {
            writeln!(self.out, "{}", as_json(&self.args.topic, place, record))?;
            return Ok(());
        }
        write_formatted(&mut self.out, &self.args.format, place, record)
    }
}

/// Where a record stands.
#[derive(Clone, Copy)]
struct Place {
    index: i32,
    offset: i64,
    timestamp: i64,
}

fn as_json(topic: &str, place: Place, record: RecordView<'_>) -> Value {
    let text = |it: Option<&[u8]>| it.map(|it| String::from_utf8_lossy(it).into_owned());
    let (key, value) = (text(record.key), text(record.value));
    let headers: Vec<_> = record
        .headers
        .map(|it| json!({"key": String::from_utf8_lossy(it.key), "value": text(it.value)}))
        .collect();
    json!({
        "topic": topic, "partition": place.index, "offset": place.offset,
        "timestamp": place.timestamp, "key": key, "value": value, "headers": headers,
    })
}

fn write_formatted(
    out: &mut impl Write,
    format: &str,
    place: Place,
    record: RecordView<'_>,
) -> anyhow::Result<()> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match (letter, letters.clone().next()) {
            ('%', Some('k')) => out.write_all(record.key.unwrap_or_default())?,
            ('%', Some('v')) => out.write_all(record.value.unwrap_or_default())?,
            ('%', Some('p')) => write!(out, "{}", place.index)?,
            ('%', Some('o')) => write!(out, "{}", place.offset)?,
            ('%', Some('t')) => write!(out, "{}", place.timestamp)?,
            ('%', Some('%')) => write!(out, "%")?,
            ('%', Some('h')) => write_headers(out, &record)?,
            ('\\', Some('n')) => writeln!(out)?,
            ('\\', Some('t')) => write!(out, "\t")?,
            _ => {
                write!(out, "{letter}")?;
                continue;
            }
        }
        letters.next();
    }
    Ok(())
}

fn write_headers(out: &mut impl Write, record: &RecordView<'_>) -> anyhow::Result<()> {
    for (place, header) in record.headers.enumerate() {
        if place > 0 {
            write!(out, ",")?;
        }
        out.write_all(header.key)?;
        write!(out, ":")?;
        out.write_all(header.value.unwrap_or_default())?;
    }
    Ok(())
}

/// What was not printed in time may be made up for as long.
const BURST: Duration = Duration::from_millis(500);
/// Between two looks at the rate.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
const BODY_BYTES_MAX: usize = 256 << 20;
