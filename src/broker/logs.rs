//! Where log lines go and which of them: standard error, filtered by `CORETIDE_LOG` (`info` by
//! default), changeable while the broker runs as the level of the logger `root` (KIP-412).

use std::sync::{Mutex, OnceLock};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

struct Filter {
    handle: reload::Handle<EnvFilter, Registry>,
    level: Mutex<&'static str>,
}

// The log of a process is one thing of the process, whatever runs in it.
static FILTER: OnceLock<Filter> = OnceLock::new();

/// Begins to log. A second call, as in tests, changes nothing.
pub fn init() {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(filter);
    let lines = fmt::layer().with_writer(std::io::stderr);
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        // Only the first subscriber of the process gets here.
        let _ = FILTER.set(Filter { handle, level: Mutex::new(DEFAULT_LEVEL) });
    }
}

/// Loggers and their levels, as Kafka names levels.
pub fn levels() -> [(&'static str, &'static str); 1] {
    let level =
        FILTER.get().map(|filter| *filter.level.lock().unwrap_or_else(|it| it.into_inner()));
    [(ROOT, level.unwrap_or(DEFAULT_LEVEL))]
}

/// Changes the level of the root logger; none gives it back its default.
pub fn set_level(level: Option<&'static str>) {
    let level = level.unwrap_or(DEFAULT_LEVEL);
    let Some(filter) = FILTER.get() else { return };
    match filter.handle.reload(EnvFilter::new(level.to_ascii_lowercase())) {
        Ok(()) => *filter.level.lock().unwrap_or_else(|it| it.into_inner()) = level,
        Err(why) => tracing::warn!(%why, "cannot change the log level"),
    }
}

const VARIABLE: &str = "CORETIDE_LOG";
const ROOT: &str = "root";
const DEFAULT_LEVEL: &str = "INFO";
