//! How many lines about one thing are written.
//!
//! Law: of warnings and errors from the same place in the code about the same thing (a partition, a
//! log, a peer's address), [`SAID_MAX`] are written in [`WINDOW`], and of those from the same place
//! [`SAID_OF_PLACE_MAX`]; the rest is counted, and the next line of that place is preceded by one
//! that says how many were withheld. A place that has nothing more to say still gets its count out
//! with the next line of any place.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// What was said in the present window.
#[derive(Debug, Default)]
pub struct Limit {
    window: Option<Instant>,
    places: HashMap<Identifier, Place>,
    things: HashMap<u64, u32>,
    withheld_before: u64,
}

#[derive(Debug, Default)]
struct Place {
    said: u32,
    withheld: u64,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is written, and so is how many were not.
    Say {
        withheld: u64,
    },
    Withhold,
}

impl Limit {
    pub fn decide(&mut self, event: &Event<'_>, now: Instant) -> Verdict {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return Verdict::Say { withheld: 0 };
        }
        let mut thing = Thing(DefaultHasher::new());
        metadata.callsite().hash(&mut thing.0);
        event.record(&mut thing);
        self.decide_on(metadata.callsite(), thing.0.finish(), now)
    }

    fn decide_on(&mut self, place: Identifier, thing: u64, now: Instant) -> Verdict {
        if self.window.is_none_or(|begun| now >= begun + WINDOW) {
            self.withheld_before += self.places.values().map(|it| it.withheld).sum::<u64>();
            self.window = Some(now);
            self.places.clear();
            self.things.clear();
        }
        let place = self.places.entry(place).or_default();
        let of_thing = match self.things.len() {
            // Whoever makes up things cannot make this grow.
            THINGS_MAX.. => &mut place.said.clone(),
            _ => self.things.entry(thing).or_default(),
        };
        if *of_thing >= SAID_MAX || place.said >= SAID_OF_PLACE_MAX {
            place.withheld += 1;
            return Verdict::Withhold;
        }
        *of_thing += 1;
        place.said += 1;
        let withheld = std::mem::take(&mut place.withheld);
        Verdict::Say { withheld: withheld + std::mem::take(&mut self.withheld_before) }
    }
}

/// The fields that say what a line is about.
struct Thing(DefaultHasher);

impl Visit for Thing {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if NAMING_FIELDS.contains(&field.name()) {
            format!("{value:?}").hash(&mut self.0);
        }
    }
}

const NAMING_FIELDS: [&str; 5] = ["partition", "log", "topic", "group", "core"];
const WINDOW: Duration = Duration::from_secs(10);
const SAID_MAX: u32 = 5;
const SAID_OF_PLACE_MAX: u32 = 50;
const THINGS_MAX: usize = 4096;
