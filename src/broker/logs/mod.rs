//! Where log lines go and which of them: standard error, as text or as JSON, one line for each
//! thing that is wrong, filtered by `CORETIDE_LOG` (`info` by default), changeable while the broker
//! runs as the level of the logger `root` (KIP-412). How often a thing is said is limited.

mod limit;

use std::fmt;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use clap::ValueEnum;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Json, JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

pub use limit::{Limit, Verdict};

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object in each line
    Json,
}

struct Filter {
    handle: reload::Handle<EnvFilter, Registry>,
    level: Mutex<&'static str>,
}

// The log of a process is one thing of the process, whatever runs in it.
static FILTER: OnceLock<Filter> = OnceLock::new();

/// Begins to log. A second call, as in tests, changes nothing.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.event_format(Limited::new(Format::default())).boxed(),
        LogFormat::Json => lines
            .fmt_fields(JsonFields::new())
            .event_format(Limited::new(Format::default().json().flatten_event(true)))
            .boxed(),
    };
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

/// Writes an event as `F` does, if the limit lets it through.
struct Limited<F> {
    format: F,
    limit: Mutex<Limit>,
}

impl<F> Limited<F> {
    fn new(format: F) -> Limited<F> {
        Limited { format, limit: Mutex::default() }
    }
}

/// A format that can also say how many lines were withheld.
trait SaysWithheld {
    fn say(&self, to: &mut Writer<'_>, withheld: u64) -> fmt::Result;
}

impl SaysWithheld for Format<Full> {
    fn say(&self, to: &mut Writer<'_>, withheld: u64) -> fmt::Result {
        SystemTime.format_time(to)?;
        writeln!(to, "  WARN broker::logs: more lines like these were withheld withheld={withheld}")
    }
}

impl SaysWithheld for Format<Json> {
    fn say(&self, to: &mut Writer<'_>, withheld: u64) -> fmt::Result {
        write!(to, "{{\"timestamp\":\"")?;
        SystemTime.format_time(to)?;
        let said = "\"level\":\"WARN\",\"message\":\"more lines like these were withheld\"";
        writeln!(to, "\",{said},\"withheld\":{withheld},\"target\":\"broker::logs\"}}")
    }
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N> + SaysWithheld,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let verdict = {
            let mut limit = self.limit.lock().unwrap_or_else(|it| it.into_inner());
            limit.decide(event, Instant::now())
        };
        match verdict {
            Verdict::Withhold => return Ok(()),
            Verdict::Say { withheld: 0 } => {}
            Verdict::Say { withheld } => self.format.say(&mut to, withheld)?,
        }
        self.format.format_event(context, to, event)
    }
}

const VARIABLE: &str = "CORETIDE_LOG";
const ROOT: &str = "root";
const DEFAULT_LEVEL: &str = "INFO";
