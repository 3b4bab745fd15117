//! The rebalance itself: gathering members, choosing the protocol, beginning a generation.

use std::collections::BTreeMap;

use protocol::{ErrorCode, Str};

use super::{ClassicGroup, Desk, State};
use crate::timers::Alarm;

impl ClassicGroup {
    pub(super) fn rebalance_or_complete(&mut self, desk: &mut Desk<'_>) {
        if self.state == State::PreparingRebalance {
            self.maybe_complete_join(desk);
        } else {
            self.prepare_rebalance(desk);
        }
    }

    /// Asks all members to join again.
    pub fn prepare_rebalance(&mut self, desk: &mut Desk<'_>) {
        if self.state == State::CompletingRebalance {
            for member in self.members.values_mut() {
                member.assignment.clear();
                member.refuse_sync(ErrorCode::REBALANCE_IN_PROGRESS, desk);
            }
            self.give_sessions(desk);
        }
        desk.timers.cancel(&Alarm::Sync(self.id.clone()));
        self.unsynced.clear();
        self.is_initial = self.state == State::Empty;
        self.enter(State::PreparingRebalance, desk);
        if self.is_initial {
            // More members are likely to come; waiting a little spares rebalances.
            let delay_ms = desk.world.settings.initial_rebalance_delay_ms;
            self.grown = false;
            self.delay_left_ms = (self.rebalance_timeout_ms() - delay_ms).max(0);
            self.await_joins(delay_ms, desk);
        } else if self.all_joined() {
            self.complete_join(desk);
        } else {
            self.await_joins(self.rebalance_timeout_ms(), desk);
        }
    }

    fn await_joins(&self, delay_ms: i64, desk: &mut Desk<'_>) {
        let due_ms = desk.world.now_ms.saturating_add(delay_ms);
        desk.timers.set(Alarm::Join(self.id.clone()), due_ms);
    }

    fn give_sessions(&self, desk: &mut Desk<'_>) {
        for id in self.members.keys() {
            self.start_session(id, desk);
        }
    }

    fn all_joined(&self) -> bool {
        self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some())
    }

    pub(super) fn maybe_complete_join(&mut self, desk: &mut Desk<'_>) {
        if self.state == State::PreparingRebalance && !self.is_initial && self.all_joined() {
            self.complete_join(desk);
        }
    }

    /// The time to join is over, or the initial delay is.
    pub fn on_join_alarm(&mut self, desk: &mut Desk<'_>) {
        if self.state != State::PreparingRebalance {
            return;
        }
        if self.is_initial && self.grown && self.delay_left_ms > 0 {
            self.grown = false;
            let delay_ms = desk.world.settings.initial_rebalance_delay_ms.min(self.delay_left_ms);
            self.delay_left_ms -= delay_ms;
            return self.await_joins(delay_ms, desk);
        }
        self.complete_join(desk);
    }

    /// Begins the next generation with those that have joined.
    fn complete_join(&mut self, desk: &mut Desk<'_>) {
        desk.timers.cancel(&Alarm::Join(self.id.clone()));
        let missing = self.members.values().filter(|it| it.joining.is_none());
        let gone: Vec<Str> =
            missing.filter(|it| it.instance_id.is_none()).map(|it| it.id.clone()).collect();
        for member in &gone {
            self.remove(member, desk);
        }
        if !self.elect_leader() && !self.members.is_empty() {
            // Only static members that are away: their sessions decide.
            return self.await_joins(self.rebalance_timeout_ms(), desk);
        }
        self.is_initial = false;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.protocol = self.choose_protocol();
        self.note_subscription();
        if self.members.is_empty() {
            self.enter(State::Empty, desk);
            return self.write(desk);
        }
        self.enter(State::CompletingRebalance, desk);
        self.announce(desk);
    }

    fn announce(&mut self, desk: &mut Desk<'_>) {
        let ids: Vec<Str> = self.members.keys().cloned().collect();
        for id in &ids {
            let answer = self.joined(id, self.is_leader(id));
            if let Some(member) = self.members.get_mut(id) {
                member.answer_join(answer, desk);
                member.is_new = false;
            }
            self.start_session(id, desk);
        }
        self.unsynced = ids.into_iter().collect();
        let due_ms = desk.world.now_ms.saturating_add(self.rebalance_timeout_ms());
        desk.timers.set(Alarm::Sync(self.id.clone()), due_ms);
    }

    /// The leader has to be one that joined. False when nobody has.
    fn elect_leader(&mut self) -> bool {
        let joined = |id: &Str| self.members.get(id).is_some_and(|it| it.joining.is_some());
        if !self.leader.as_ref().is_some_and(joined) {
            let Some(next) = self.members.keys().find(|id| joined(id)) else { return false };
            self.leader = Some(next.clone());
        }
        true
    }

    /// Of what all members support, what most of them like best; the earliest name decides.
    pub(super) fn choose_protocol(&self) -> Option<Str> {
        let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut liked = member.protocols.iter().map(|(name, _)| name);
            if let Some(name) = liked.find(|name| self.is_common(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
    }

    /// Members that joined and then never fetched their assignment are taken out.
    pub fn on_sync_alarm(&mut self, desk: &mut Desk<'_>) {
        let completing = matches!(self.state, State::CompletingRebalance | State::Stable);
        if !completing || self.unsynced.is_empty() {
            return;
        }
        for member in std::mem::take(&mut self.unsynced) {
            self.remove(&member, desk);
        }
        self.prepare_rebalance(desk);
    }
}
