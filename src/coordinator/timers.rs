//! Alarms by value: who waits for what, and which comes first.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Str;

/// What to look at when the time has come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// A member's session, or the patience with one that has not joined yet.
    Session(Str, Str),
    /// The end of gathering members.
    Join(Str),
    /// The end of waiting for all members to fetch their assignment.
    Sync(Str),
    /// The patience with a member of a consumer group that has to give partitions up.
    Revoke(Str, Str),
    /// With one of the classic protocol that has to join again.
    Rejoin(Str, Str),
    /// With one of the classic protocol that has to fetch its assignment.
    Fetch(Str, Str),
    /// Time to look which topics a group's patterns stand for.
    Resolve(Str),
}

impl Alarm {
    pub fn group(&self) -> &Str {
        let (Alarm::Session(group, _)
        | Alarm::Join(group)
        | Alarm::Sync(group)
        | Alarm::Revoke(group, _)
        | Alarm::Rejoin(group, _)
        | Alarm::Fetch(group, _)
        | Alarm::Resolve(group)) = self;
        group
    }
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeMap<Alarm, i64>,
    order: BTreeSet<(i64, Alarm)>,
}

impl Timers {
    /// Replaces an alarm of the same kind.
    pub fn set(&mut self, alarm: Alarm, due_ms: i64) {
        self.cancel(&alarm);
        self.due.insert(alarm.clone(), due_ms);
        self.order.insert((due_ms, alarm));
    }

    pub fn cancel(&mut self, alarm: &Alarm) {
        if let Some(due_ms) = self.due.remove(alarm) {
            self.order.remove(&(due_ms, alarm.clone()));
        }
    }

    pub fn is_set(&self, alarm: &Alarm) -> bool {
        self.due.contains_key(alarm)
    }

    pub fn next_due(&self) -> Option<i64> {
        self.order.first().map(|(due_ms, _)| *due_ms)
    }

    pub fn pop_due(&mut self, now_ms: i64) -> Option<Alarm> {
        if self.next_due()? > now_ms {
            return None;
        }
        let (_, alarm) = self.order.pop_first()?;
        self.due.remove(&alarm);
        Some(alarm)
    }
}
