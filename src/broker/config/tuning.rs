//! What tunes one core: flags for all slots, and `[core.N]` tables of the file for single ones.
//!
//! Law: every knob has a default under which nothing needs to be tuned, a range that is checked at
//! start, and its page in docs/performance.md. A table of a core wins over everything else, also
//! over flags: it is the more particular word.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;

use crate::config::{ByteSize, ConfigError};

/// The knobs as given, before defaults.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Tuning a core (see docs/performance.md)")]
pub struct GivenTuning {
    /// Memory for buffers, queues and caches of one slot [default: 512MiB]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_MEMORY_PER_CORE")]
    pub memory_per_core: Option<ByteSize>,
    /// Registered I/O memory of one slot [default: what memlock allows, 4MiB at most]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_IO_MEMORY_PER_CORE")]
    pub io_memory_per_core: Option<ByteSize>,
    /// How long an idle core polls before it sleeps [default: 0us]
    #[arg(long, value_name = "TIME", env = "CORETIDE_SPIN_BEFORE_PARK")]
    pub spin_before_park: Option<String>,
    /// Entries of a core's submission ring [default: 128]
    #[arg(long, value_name = "N", env = "CORETIDE_RING_DEPTH")]
    pub ring_depth: Option<u32>,
    /// Most bytes of a partition that one write commits [default: 1MiB]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_COMMIT_BYTES_MAX")]
    pub commit_bytes_max: Option<ByteSize>,
    /// How long a commit waits for more batches [default: 0us]
    #[arg(long, value_name = "TIME", env = "CORETIDE_COMMIT_LINGER")]
    pub commit_linger: Option<String>,
    /// Disk space of a core's journal of small commits, 0 for none [default: 128MiB]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_JOURNAL_SIZE")]
    pub journal_size: Option<ByteSize>,
    /// A commit of more bytes goes straight to its segment [default: 16KiB]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_JOURNAL_COMMIT_MAX")]
    pub journal_commit_max: Option<ByteSize>,
    /// Most bytes read ahead for a reader in order, 0 for none [default: 1MiB]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_READ_AHEAD")]
    pub read_ahead: Option<ByteSize>,
    /// Client connections of one slot [default: no limit of its own]
    #[arg(long, value_name = "N", env = "CORETIDE_MAX_CONNECTIONS_PER_CORE")]
    pub max_connections_per_core: Option<u32>,
    /// SO_SNDBUF of client sockets [default: the system's, which grows by itself]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_SOCKET_SEND_BUFFER")]
    pub socket_send_buffer: Option<ByteSize>,
    /// SO_RCVBUF of client sockets [default: the system's, which grows by itself]
    #[arg(long, value_name = "SIZE", env = "CORETIDE_SOCKET_RECEIVE_BUFFER")]
    pub socket_receive_buffer: Option<ByteSize>,
}

/// The knobs of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Bytes of buffers, queues and caches that the slot may hold.
    pub memory: u64,
    /// Bytes of registered I/O memory; none leaves it to the limits of the process.
    pub io_memory: Option<usize>,
    pub spin: Duration,
    pub ring_depth: usize,
    pub commit_bytes_max: usize,
    pub commit_linger: Duration,
    /// Disk space of the journal; none without one.
    pub journal_bytes: Option<u64>,
    pub journal_commit_bytes_max: usize,
    pub read_ahead_bytes: usize,
    pub connections_max: usize,
    pub send_buffer_bytes: Option<usize>,
    pub receive_buffer_bytes: Option<usize>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            memory: MEMORY_DEFAULT,
            io_memory: None,
            spin: Duration::ZERO,
            ring_depth: RING_DEPTH_DEFAULT,
            commit_bytes_max: COMMIT_BYTES_MAX,
            commit_linger: Duration::ZERO,
            journal_bytes: Some(JOURNAL_BYTES_DEFAULT),
            journal_commit_bytes_max: JOURNAL_COMMIT_DEFAULT,
            read_ahead_bytes: READ_AHEAD_DEFAULT,
            connections_max: usize::MAX,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}

impl GivenTuning {
    /// Names as in flags and in the file.
    pub const KEYS: [&str; 12] = [
        "memory-per-core",
        "io-memory-per-core",
        "spin-before-park",
        "ring-depth",
        "commit-bytes-max",
        "commit-linger",
        "journal-size",
        "journal-commit-max",
        "read-ahead",
        "max-connections-per-core",
        "socket-send-buffer",
        "socket-receive-buffer",
    ];

    /// Takes one line of the file. False if the key is none of these.
    pub fn take(&mut self, key: &str, text: &str) -> Result<bool, ConfigError> {
        let size = || text.parse::<ByteSize>().map_err(|why| named(key, &why.0)).map(Some);
        let count = || {
            let wrong = |_| named(key, &format!("'{text}' is no number"));
            text.parse::<u32>().map_err(wrong).map(Some)
        };
        match key {
            "memory-per-core" => self.memory_per_core = size()?,
            "io-memory-per-core" => self.io_memory_per_core = size()?,
            "spin-before-park" => self.spin_before_park = Some(text.to_owned()),
            "ring-depth" => self.ring_depth = count()?,
            "commit-bytes-max" => self.commit_bytes_max = size()?,
            "commit-linger" => self.commit_linger = Some(text.to_owned()),
            "journal-size" => self.journal_size = size()?,
            "journal-commit-max" => self.journal_commit_max = size()?,
            "read-ahead" => self.read_ahead = size()?,
            "max-connections-per-core" => self.max_connections_per_core = count()?,
            "socket-send-buffer" => self.socket_send_buffer = size()?,
            "socket-receive-buffer" => self.socket_receive_buffer = size()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes from `weaker` what `self` leaves open.
    pub fn or(self, weaker: &GivenTuning) -> GivenTuning {
        let weaker = weaker.clone();
        GivenTuning {
            memory_per_core: self.memory_per_core.or(weaker.memory_per_core),
            io_memory_per_core: self.io_memory_per_core.or(weaker.io_memory_per_core),
            spin_before_park: self.spin_before_park.or(weaker.spin_before_park),
            ring_depth: self.ring_depth.or(weaker.ring_depth),
            commit_bytes_max: self.commit_bytes_max.or(weaker.commit_bytes_max),
            commit_linger: self.commit_linger.or(weaker.commit_linger),
            journal_size: self.journal_size.or(weaker.journal_size),
            journal_commit_max: self.journal_commit_max.or(weaker.journal_commit_max),
            read_ahead: self.read_ahead.or(weaker.read_ahead),
            max_connections_per_core: self
                .max_connections_per_core
                .or(weaker.max_connections_per_core),
            socket_send_buffer: self.socket_send_buffer.or(weaker.socket_send_buffer),
            socket_receive_buffer: self.socket_receive_buffer.or(weaker.socket_receive_buffer),
        }
    }

    /// Fills in the defaults and checks every value.
    pub fn resolve(&self) -> Result<Tuning, ConfigError> {
        let plain = Tuning::default();
        let bytes = |given: Option<ByteSize>| given.map(|size| size.bytes() as usize);
        let tuning = Tuning {
            memory: self.memory_per_core.map_or(plain.memory, ByteSize::bytes),
            io_memory: bytes(self.io_memory_per_core),
            spin: time("spin-before-park", self.spin_before_park.as_deref())?,
            ring_depth: self.ring_depth.map_or(plain.ring_depth, |depth| depth as usize),
            commit_bytes_max: bytes(self.commit_bytes_max).unwrap_or(plain.commit_bytes_max),
            commit_linger: time("commit-linger", self.commit_linger.as_deref())?,
            journal_bytes: match self.journal_size.map(ByteSize::bytes) {
                None => plain.journal_bytes,
                Some(0) => None,
                given => given,
            },
            journal_commit_bytes_max: bytes(self.journal_commit_max)
                .unwrap_or(plain.journal_commit_bytes_max),
            read_ahead_bytes: bytes(self.read_ahead).unwrap_or(plain.read_ahead_bytes),
            connections_max: self
                .max_connections_per_core
                .map_or(plain.connections_max, |count| count as usize),
            send_buffer_bytes: bytes(self.socket_send_buffer),
            receive_buffer_bytes: bytes(self.socket_receive_buffer),
        };
        tuning.check()?;
        Ok(tuning)
    }
}

impl Tuning {
    fn check(&self) -> Result<(), ConfigError> {
        let size = |bytes: usize| ByteSize::new(bytes as u64);
        if self.memory < MEMORY_MIN {
            return Err(ConfigError(format!(
                "memory-per-core is {} bytes; a slot needs at least {MEMORY_MIN} (32MiB)",
                self.memory
            )));
        }
        if let Some(bytes) = self.io_memory
            && !(IO_MEMORY_MIN..=IO_MEMORY_MAX).contains(&bytes)
        {
            let (min, max) = (size(IO_MEMORY_MIN), size(IO_MEMORY_MAX));
            return Err(named("io-memory-per-core", &format!("choose {min} to {max}")));
        }
        if !self.ring_depth.is_power_of_two() || !RING_DEPTHS.contains(&self.ring_depth) {
            return Err(named("ring-depth", "choose a power of two from 16 to 4096"));
        }
        if !(COMMIT_BYTES_MIN..=COMMIT_BYTES_MAX).contains(&self.commit_bytes_max) {
            return Err(named("commit-bytes-max", "choose 64KiB to 1MiB"));
        }
        if self.journal_bytes.is_some_and(|bytes| !JOURNAL_SIZES.contains(&bytes)) {
            return Err(named("journal-size", "choose 0 for none, or 256KiB to 4GiB"));
        }
        if !(JOURNAL_COMMIT_MIN..=COMMIT_BYTES_MAX).contains(&self.journal_commit_bytes_max) {
            return Err(named("journal-commit-max", "choose 1KiB to 1MiB"));
        }
        if self.read_ahead_bytes > READ_AHEAD_MAX {
            return Err(named("read-ahead", &format!("choose 0 to {}", size(READ_AHEAD_MAX))));
        }
        if self.connections_max == 0 {
            return Err(named("max-connections-per-core", "0 would serve nobody"));
        }
        for (key, bytes) in [
            ("socket-send-buffer", self.send_buffer_bytes),
            ("socket-receive-buffer", self.receive_buffer_bytes),
        ] {
            if bytes.is_some_and(|bytes| !SOCKET_BUFFERS.contains(&bytes)) {
                return Err(named(key, "choose 4KiB to 64MiB"));
            }
        }
        Ok(())
    }
}

/// The slots' tunings: those of all of them, and what single cores say otherwise.
pub fn resolve_cores(
    all: &GivenTuning,
    cores: &BTreeMap<u16, GivenTuning>,
) -> Result<(Tuning, BTreeMap<u16, Tuning>), ConfigError> {
    let of_core = |(&slot, own): (&u16, &GivenTuning)| {
        let within = |why: ConfigError| ConfigError(format!("[core.{slot}] {why}"));
        Ok((slot, own.clone().or(all).resolve().map_err(within)?))
    };
    Ok((all.resolve()?, cores.iter().map(of_core).collect::<Result<_, ConfigError>>()?))
}

/// `50us`, `2ms`; nothing is zero.
fn time(key: &str, text: Option<&str>) -> Result<Duration, ConfigError> {
    let Some(text) = text else { return Ok(Duration::ZERO) };
    let wrong = || named(key, &format!("'{text}' is no time; write 0, 50us or 2ms, at most 10ms"));
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
    let time = match &text[digits.len()..] {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "" if number == 0 => Duration::ZERO,
        _ => return Err(wrong()),
    };
    if time > TIME_MAX { Err(wrong()) } else { Ok(time) }
}

fn named(key: &str, why: &str) -> ConfigError {
    ConfigError(format!("{key}: {why}"))
}

const MEMORY_DEFAULT: u64 = 512 << 20;
const MEMORY_MIN: u64 = 32 << 20;
const IO_MEMORY_MIN: usize = 64 << 10;
const IO_MEMORY_MAX: usize = 256 << 20;
const RING_DEPTH_DEFAULT: usize = 128;
const RING_DEPTHS: std::ops::RangeInclusive<usize> = 16..=4096;
const COMMIT_BYTES_MIN: usize = 64 << 10;
/// Also the most that one write may be, and what recovery expects of it.
const COMMIT_BYTES_MAX: usize = 1 << 20;
const JOURNAL_SIZES: std::ops::RangeInclusive<u64> = 256 << 10..=4 << 30;
const JOURNAL_COMMIT_MIN: usize = 1 << 10;
const JOURNAL_BYTES_DEFAULT: u64 = 128 << 20;
const JOURNAL_COMMIT_DEFAULT: usize = 16 << 10;
const READ_AHEAD_DEFAULT: usize = 1 << 20;
const READ_AHEAD_MAX: usize = 16 << 20;
const SOCKET_BUFFERS: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 20;
/// A core that polls or waits for longer would make a lie of its latencies.
const TIME_MAX: Duration = Duration::from_millis(10);
