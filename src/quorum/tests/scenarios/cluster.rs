//! A quorum in virtual time: members with disks, a network that delays, loses and cuts, one seed.
//!
//! `Node::pump` is the order every driver of a `Quorum` has to keep: store, then send, then apply.
//! The cluster watches two laws at every step: a term has one leader, and what is committed at an
//! index is the same everywhere and for ever.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use quorum::{
    Committed, Content, HardState, LogEntry, MemberId, Members, Message, Output, Persisted,
    Proposal, Quorum, Settings, Snapshot, Timing,
};

pub fn member(id: u64) -> MemberId {
    MemberId::new(id).expect("member ids are not 0")
}

pub fn settings(id: u64, seed: u64) -> Settings {
    Settings { id: member(id), seed, timing: Timing::default() }
}

/// What one member has made durable, as bytes.
#[derive(Clone)]
pub struct Disk {
    pub hard_state: Bytes,
    pub snapshot: Bytes,
    pub entries: BTreeMap<u64, Bytes>,
}

impl Disk {
    pub fn new(persisted: &Persisted) -> Disk {
        let Persisted { hard_state, snapshot, entries } = persisted;
        Disk {
            hard_state: hard_state.encode(),
            snapshot: snapshot.encode(),
            entries: entries.iter().map(|entry| (entry.index, entry.encode())).collect(),
        }
    }

    pub fn load(&self) -> Persisted {
        let entries = self.entries.values().cloned().map(LogEntry::decode);
        Persisted {
            hard_state: HardState::decode(self.hard_state.clone()).expect("hard state"),
            snapshot: Snapshot::decode(self.snapshot.clone()).expect("snapshot"),
            entries: entries.collect::<Result<_, _>>().expect("entries"),
        }
    }

    /// Stores a round in the prescribed order; a crash may come after any number of `steps`.
    fn store(&mut self, output: &Output, mut steps: usize) {
        let mut step = || {
            steps = steps.saturating_sub(1);
            steps > 0
        };
        if let Some(snapshot) = &output.snapshot {
            if !step() {
                return;
            }
            self.snapshot = snapshot.encode();
            self.entries.retain(|index, _| *index > snapshot.index);
        }
        for entry in &output.entries {
            if !step() {
                return;
            }
            self.entries.retain(|index, _| *index < entry.index);
            self.entries.insert(entry.index, entry.encode());
        }
        if let Some(hard_state) = output.hard_state
            && step()
        {
            self.hard_state = hard_state.encode();
        }
    }
}

pub struct Node {
    pub id: u64,
    pub disk: Disk,
    pub quorum: Option<Quorum>,
    /// The state machine: every payload applied so far, one after the other.
    pub state: BytesMut,
    pub committed: Vec<Committed>,
    seed: u64,
    starts: u64,
}

/// What one round made visible outside.
#[derive(Default)]
pub struct Round {
    pub sent: Vec<(u64, Bytes)>,
    pub committed: Vec<Committed>,
    pub installed: Option<Snapshot>,
}

impl Node {
    pub fn new(id: u64, seed: u64, persisted: &Persisted) -> Node {
        let mut node = Node {
            id,
            disk: Disk::new(persisted),
            quorum: None,
            state: BytesMut::new(),
            committed: Vec::new(),
            seed,
            starts: 0,
        };
        node.start();
        node
    }

    pub fn start(&mut self) {
        let persisted = self.disk.load();
        self.starts += 1;
        self.state = BytesMut::from(&persisted.snapshot.data[..]);
        let settings = settings(self.id, self.seed.wrapping_add(self.starts));
        self.quorum = Some(Quorum::new(&settings, persisted).expect("the disk is sound"));
    }

    pub fn quorum(&mut self) -> &mut Quorum {
        self.quorum.as_mut().expect("the member runs")
    }

    /// One round: store, send, apply. None when there was nothing to do.
    pub fn pump(&mut self) -> Option<Round> {
        let output = self.quorum.as_mut()?.ready()?;
        let mut round = Round::default();
        let address = |o: quorum::Outbound| (o.to.get(), o.message.encode());
        // 1. A leader's messages may travel while it stores: it counts itself only afterwards.
        round.sent.extend(output.send_at_once.iter().cloned().map(address));
        // 2. Store: snapshot, entries, hard state. Only when all of it is durable: advance.
        self.disk.store(&output, usize::MAX);
        let advanced = self.quorum().advance();
        // 3. Everything else may travel now.
        round.sent.extend(advanced.send.into_iter().map(address));
        // 4. Apply, in order: the snapshot replaces the state, committed payloads change it.
        if let Some(snapshot) = &advanced.snapshot {
            self.state = BytesMut::from(&snapshot.data[..]);
        }
        for committed in &advanced.committed {
            if let Content::Payload(payload) = &committed.content {
                self.state.extend_from_slice(payload);
            }
        }
        self.committed.extend(advanced.committed.iter().cloned());
        round.committed = advanced.committed;
        round.installed = advanced.snapshot;
        // 5. Once in a while, or when a member asks: store the state and forget its history.
        if self.quorum().snapshot_wanted() {
            self.snapshot();
        }
        Some(round)
    }

    /// The process dies while it stores a round; `steps` of the round reached the disk.
    pub fn crash_while_storing(&mut self, steps: usize) -> Vec<(u64, Bytes)> {
        let output = self.quorum.as_mut().and_then(Quorum::ready);
        self.quorum = None;
        let Some(output) = output else { return Vec::new() };
        self.disk.store(&output, steps + 1);
        output.send_at_once.iter().map(|o| (o.to.get(), o.message.encode())).collect()
    }

    /// Takes a snapshot of the state machine and forgets the entries it covers.
    pub fn snapshot(&mut self) {
        let data = self.state.clone().freeze();
        let snapshot = self.quorum().snapshot_of(data);
        self.disk.snapshot = snapshot.encode();
        let index = self.quorum().compact(snapshot);
        self.disk.entries.retain(|kept, _| *kept > index);
    }
}

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub struct Cluster {
    pub nodes: BTreeMap<u64, Node>,
    pub now_ms: u64,
    pub random: Random,
    pub delay_ms_max: u64,
    /// Of a thousand messages, so many are lost.
    pub lost_per_mille: u64,
    /// Pairs that cannot reach each other, in this direction.
    pub cut: BTreeSet<(u64, u64)>,
    in_flight: BTreeMap<(u64, u64), (u64, Bytes)>,
    sent: u64,
    leaders: BTreeMap<u64, u64>,
    pub log: BTreeMap<u64, (u64, Content)>,
    trace: u32,
}

impl Cluster {
    pub fn new(seed: u64, size: u64) -> Cluster {
        let members = Members::voters((1..=size).map(member));
        let first = Persisted::bootstrap(members, Bytes::new());
        let nodes = (1..=size).map(|id| (id, Node::new(id, seed, &first))).collect();
        Cluster {
            nodes,
            now_ms: 1_000,
            random: Random(seed),
            delay_ms_max: 5,
            lost_per_mille: 0,
            cut: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            leaders: BTreeMap::new(),
            log: BTreeMap::new(),
            trace: 0,
        }
    }

    pub fn join(&mut self, id: u64) {
        let seed = self.random.next();
        self.nodes.insert(id, Node::new(id, seed, &Persisted::joining()));
    }

    pub fn kill(&mut self, id: u64) {
        let steps = self.random.below(6) as usize;
        let sent = self.node(id).crash_while_storing(steps);
        self.send(id, sent);
    }

    pub fn start(&mut self, id: u64) {
        self.node(id).start();
    }

    pub fn isolate(&mut self, id: u64) {
        for other in self.nodes.keys().copied().filter(|other| *other != id) {
            self.cut.extend([(id, other), (other, id)]);
        }
    }

    pub fn node(&mut self, id: u64) -> &mut Node {
        self.nodes.get_mut(&id).expect("such a member")
    }

    /// The leader of the newest term that any member leads.
    pub fn leader(&self) -> Option<u64> {
        let leads = |node: &&Node| node.quorum.as_ref().is_some_and(Quorum::is_leader);
        let leading = self.nodes.values().filter(leads);
        leading.max_by_key(|n| n.quorum.as_ref().map(Quorum::term)).map(|node| node.id)
    }

    /// Lets virtual time pass, millisecond by millisecond.
    pub fn run_for(&mut self, duration_ms: u64) {
        for _ in 0..duration_ms {
            self.step_ms();
        }
    }

    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Cluster) -> bool) -> u64 {
        let begun = self.now_ms;
        while !done(self) {
            assert!(self.now_ms - begun < 60_000, "after a minute still not: {what}");
            self.step_ms();
        }
        self.now_ms - begun
    }

    pub fn elect(&mut self) -> u64 {
        self.run_until("a leader", |cluster| cluster.leader().is_some());
        self.leader().expect("there is one")
    }

    /// Proposes at whoever leads; none when nobody does.
    pub fn propose(&mut self, payload: impl Into<Bytes>) -> Option<Proposal> {
        let leader = self.leader()?;
        self.node(leader).quorum().propose(payload.into()).ok()
    }

    /// Proposes and waits until every running member has applied it.
    pub fn commit(&mut self, payload: &'static [u8]) -> Proposal {
        let mut proposal = None;
        self.run_until("a proposal", |cluster| {
            proposal = cluster.propose(Bytes::from_static(payload));
            proposal.is_some()
        });
        let proposal = proposal.expect("it was made");
        self.settle(proposal.index);
        proposal
    }

    /// Waits until every running member has applied the entry `index`.
    pub fn settle(&mut self, index: u64) {
        self.run_until("applied everywhere", |cluster| {
            let mut running = cluster.nodes.values().filter_map(|node| node.quorum.as_ref());
            running.all(|quorum| quorum.applied().index >= index)
        });
    }

    /// A checksum over all that was sent and committed, in order.
    pub fn trace(&self) -> u32 {
        self.trace
    }

    fn step_ms(&mut self) {
        self.now_ms += 1;
        let now_ms = self.now_ms;
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= now_ms
        {
            let (to, bytes) = entry.remove();
            self.deliver(to, bytes);
        }
        for id in self.nodes.keys().copied().collect::<Vec<_>>() {
            if let Some(quorum) = &mut self.node(id).quorum {
                quorum.tick(now_ms);
            }
            self.pump(id);
        }
    }

    fn deliver(&mut self, to: u64, bytes: Bytes) {
        let now_ms = self.now_ms;
        let Some(quorum) = self.nodes.get_mut(&to).and_then(|node| node.quorum.as_mut()) else {
            return;
        };
        let message = Message::decode(bytes).expect("what was sent decodes");
        // A member that was removed may still be talking.
        let _ = quorum.step(now_ms, message);
        self.pump(to);
    }

    fn pump(&mut self, id: u64) {
        while let Some(round) = self.node(id).pump() {
            self.watch(id, &round);
            self.send(id, round.sent);
        }
    }

    fn send(&mut self, from: u64, messages: Vec<(u64, Bytes)>) {
        for (to, bytes) in messages {
            self.trace = crc32(self.trace, &bytes);
            let lost = self.random.below(1_000) < self.lost_per_mille;
            if lost || self.cut.contains(&(from, to)) {
                continue;
            }
            self.sent += 1;
            let at = self.now_ms + 1 + self.random.below(self.delay_ms_max);
            self.in_flight.insert((at, self.sent), (to, bytes));
        }
    }

    /// The two laws.
    fn watch(&mut self, id: u64, round: &Round) {
        let quorum = self.nodes[&id].quorum.as_ref().expect("it just pumped");
        if quorum.is_leader() {
            let leader = *self.leaders.entry(quorum.term()).or_insert(id);
            assert_eq!(leader, id, "term {} has two leaders", quorum.term());
        }
        if let Some(snapshot) = &round.installed {
            self.watch_state(snapshot.index, &snapshot.data);
        }
        for Committed { index, term, content } in &round.committed {
            let entry = (*term, content.clone());
            let known = self.log.entry(*index).or_insert_with(|| entry.clone());
            assert_eq!(*known, entry, "member {id} committed something else at {index}");
            self.trace = crc32(self.trace, &index.to_be_bytes());
        }
        let (applied, state) = (quorum.applied().index, self.nodes[&id].state.clone());
        if !round.committed.is_empty() {
            self.watch_state(applied, &state);
        }
    }

    /// The state machine at `index` is what the committed payloads up to there make.
    fn watch_state(&self, index: u64, state: &[u8]) {
        let mut expected = Vec::new();
        for (_, content) in self.log.range(..=index).map(|(_, entry)| entry) {
            if let Content::Payload(payload) = content {
                expected.extend_from_slice(payload);
            }
        }
        assert!(state == expected, "the state at {index} is not what was committed");
    }
}

/// A checksum that is good enough to tell two traces apart.
fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed ^ 0x811c_9dc5, |hash, b| (hash ^ u32::from(*b)).wrapping_mul(16_777_619))
}
