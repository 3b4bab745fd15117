//! Subscriptions by pattern: RE2's syntax, matched against whole topic names.
//!
//! The expressions here are finite automata as RE2's are, so that no pattern takes more time than
//! the names are long; what a compiled one may take of memory is bounded. RE2's `\Q…\E`, which
//! the library does not have, is written out.

use std::collections::BTreeSet;

use metadata::Image;
use protocol::Str;
use protocol::group_records::ConsumerGroupRegularExpressionValue;
use regex::{Regex, RegexBuilder};

use super::{Change, Draft};
use crate::timers::Alarm;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern(pub String);

/// Whether members may subscribe with it.
pub fn check_pattern(pattern: &str) -> Result<(), BadPattern> {
    compile(pattern).map(drop)
}

fn compile(pattern: &str) -> Result<Regex, BadPattern> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(BadPattern(format!("it is longer than {PATTERN_BYTES_MAX} bytes")));
    }
    let plain = without_quotes(pattern);
    let build = |text: &str| {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(COMPILED_BYTES_MAX).nest_limit(NESTING_MAX).build()
    };
    // On its own first: brackets that only pair with those around it are mistakes.
    build(&plain).map_err(|why| BadPattern(why.to_string()))?;
    build(&format!(r"\A(?:{plain})\z")).map_err(|why| BadPattern(why.to_string()))
}

/// Writes `\Q…\E` as the text that it stands for.
fn without_quotes(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        plain.push_str(before);
        if let Some(quoted) = escape.strip_prefix(r"\Q") {
            let (text, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            plain.push_str(&regex::escape(text));
            rest = after;
            continue;
        }
        // Whatever is escaped is no beginning of something else.
        let escaped = escape.chars().take(2).map(char::len_utf8).sum();
        plain.push_str(&escape[..escaped]);
        rest = &escape[escaped..];
    }
    plain.push_str(rest);
    plain
}

impl Draft<'_> {
    /// Sees to it that the topics of the group's patterns are known and not too old.
    pub(super) fn maybe_refresh_patterns(&mut self, needed: bool, newest_topics: i64) {
        let group = &self.group;
        if group.pattern_members.is_empty() {
            return;
        }
        let last = group.patterns.values().next();
        let last_ms = last.map_or(i64::MIN, |it| it.at_ms);
        if self.world.is_recent(last_ms, REFRESH_PAUSE_MS + 1) {
            return;
        }
        let refresh_ms = self.world.settings.consumer.pattern_refresh_ms;
        let needed = needed
            || group.pattern_members.len() != group.patterns.len()
            || last.map_or(0, |it| it.version) < newest_topics
            || !self.world.is_recent(last_ms, refresh_ms + 1);
        let alarm = Alarm::Resolve(group.id.clone());
        if needed && !self.timers.is_set(&alarm) {
            self.timers.set(alarm, self.world.now_ms);
        }
    }

    /// Looks which topics the patterns of the group stand for now. The next heartbeats assign.
    pub fn resolve_patterns(&mut self) {
        let mut changed = false;
        let patterns: Vec<Str> = self.group.pattern_members.keys().cloned().collect();
        for pattern in patterns {
            let Ok(regex) = compile(&pattern) else { continue };
            let topics = matching(&regex, self.world.image);
            let before = self.group.patterns.get(&pattern).map(|it| &it.topics);
            changed |= before.map_or(!topics.is_empty(), |before| *before != topics);
            let value = ConsumerGroupRegularExpressionValue {
                topics: topics.into_iter().collect(),
                version: self.world.image.offset() as i64,
                timestamp: self.world.wall_ms,
            };
            self.put(Change::Pattern(pattern, Some(value)));
        }
        self.update_metadata(changed);
    }
}

fn matching(regex: &Regex, image: &Image) -> BTreeSet<Str> {
    image.topic_names().filter(|name| regex.is_match(name)).cloned().collect()
}

const PATTERN_BYTES_MAX: usize = 8 << 10;
const COMPILED_BYTES_MAX: usize = 1 << 20;
const NESTING_MAX: u32 = 100;
/// However much changes, patterns are looked at no more often than this.
const REFRESH_PAUSE_MS: i64 = 10_000;
