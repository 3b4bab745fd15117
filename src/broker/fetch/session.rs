//! Incremental fetch sessions (KIP-227), a value without I/O.
//!
//! A session remembers what a client wants and what it was last told, so that later requests name
//! only changes and later answers only news. Partitions are kept in the order in which they are
//! read; one that returned data goes to the end, so that none starves behind a byte limit.
//!
//! How many they are, is up to the client: whoever walks over them does so in pieces, and a large
//! session that is over is left to whoever can drop it beside the loop.

use std::collections::{BTreeMap, VecDeque};

use protocol::{ErrorCode, Str, Uuid};
use runtime::time::Instant;

/// A topic as the client names it: by name up to version 12, by id from 13 on (KIP-516).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicKey {
    Name(Str),
    Id(Uuid),
}

/// A partition as the client names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionKey {
    pub topic: TopicKey,
    pub index: i32,
}

/// What a client wants of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    pub fetch_offset: i64,
    pub max_bytes: i32,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
    /// Of a topic named by id: its name when the client asked first.
    pub name: Option<Str>,
}

/// How a request refers to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub id: i32,
    pub epoch: i32,
}

/// A request whose session is sorted out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// 0 when this fetch belongs to no session yet.
    pub session: i32,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything is answered and nothing is remembered.
    Sessionless,
    /// Everything is answered; a session may be made of it.
    Full,
    /// Only news are answered.
    Incremental,
}

/// Why a session could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub ErrorCode);

/// What the client was last told of a partition, and what it is about to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    pub error: ErrorCode,
    pub bytes: usize,
    pub high_watermark: i64,
    pub log_start_offset: i64,
    pub diverging: bool,
}

/// What a request wants that belongs to no session yet, in reading order. The last mention of a
/// partition counts, at the place of the first.
#[derive(Default)]
pub struct Wanted {
    places: BTreeMap<PartitionKey, usize>,
    list: VecDeque<(PartitionKey, Interest)>,
}

impl Wanted {
    pub fn add(&mut self, key: PartitionKey, interest: Interest) {
        match self.places.get(&key) {
            Some(&place) => self.list[place].1 = interest,
            None => {
                self.places.insert(key.clone(), self.list.len());
                self.list.push_back((key, interest));
            }
        }
    }

    /// The next one, when all have been added.
    pub fn take_next(&mut self) -> Option<(PartitionKey, Interest)> {
        // What they were found by goes with them, not at once.
        self.places.pop_first();
        self.list.pop_front()
    }
}

/// The sessions of one slot.
pub struct SessionCache {
    sessions: BTreeMap<i32, Session>,
    /// Large ones that are over.
    retired: Vec<Session>,
    /// max.incremental.fetch.session.cache.slots
    capacity: usize,
}

/// What is remembered of a client.
pub struct Session {
    epoch: i32,
    by_id: bool,
    last_used: Instant,
    next_place: u64,
    places: BTreeMap<PartitionKey, u64>,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    key: PartitionKey,
    interest: Interest,
    told: Option<(i64, i64)>,
}

impl SessionCache {
    pub fn new(capacity: usize) -> SessionCache {
        SessionCache { sessions: BTreeMap::new(), retired: Vec::new(), capacity }
    }

    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// Sorts out which session a request belongs to.
    ///
    /// `by_id` tells whether the request names topics by id; a session never changes between the
    /// two.
    pub fn begin(
        &mut self,
        now: Instant,
        reference: Reference,
        by_id: bool,
    ) -> Result<Begun, Refused> {
        if reference.epoch == INITIAL_EPOCH || reference.epoch == FINAL_EPOCH {
            self.end(reference.id);
            let kind = if reference.epoch == FINAL_EPOCH { Kind::Sessionless } else { Kind::Full };
            return Ok(Begun { session: 0, kind });
        }
        let Some(session) = self.sessions.get_mut(&reference.id) else {
            return Err(Refused(ErrorCode::FETCH_SESSION_ID_NOT_FOUND));
        };
        if session.by_id != by_id {
            return Err(Refused(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR));
        }
        if session.epoch != reference.epoch {
            return Err(Refused(ErrorCode::INVALID_FETCH_SESSION_EPOCH));
        }
        session.epoch = next_epoch(session.epoch);
        session.last_used = now;
        Ok(Begun { session: reference.id, kind: Kind::Incremental })
    }

    /// A session wants this too, or from elsewhere on.
    pub fn update(&mut self, session: i32, key: PartitionKey, interest: Interest) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.update(key, interest);
        }
    }

    pub fn forget(&mut self, session: i32, key: &PartitionKey) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.forget(key);
        }
    }

    /// What a session wants in reading order, from a place on: with the places, to go on behind
    /// the last one looked at.
    pub fn wanted(
        &self,
        session: i32,
        from: u64,
    ) -> impl Iterator<Item = (u64, &PartitionKey, &Interest)> {
        let session = self.sessions.get(&session).into_iter();
        let entries = session.flat_map(move |session| session.entries.range(from..));
        entries.map(|(place, entry)| (*place, &entry.key, &entry.interest))
    }

    /// Ends a session, if there is one of this id.
    pub fn end(&mut self, session: i32) {
        if let Some(session) = self.sessions.remove(&session)
            && session.entries.len() > ENTRIES_DROPPED_INLINE
        {
            self.retired.push(session);
        }
    }

    /// Sessions that are over and take long to drop.
    pub fn take_retired(&mut self) -> Vec<Session> {
        std::mem::take(&mut self.retired)
    }

    /// Whether there would be room for a session of so many partitions.
    pub fn has_room(&self, now: Instant, partitions: usize) -> bool {
        partitions > 0 && self.room(now, partitions) != Room::None
    }

    /// Takes a session that was made of a full fetch, if there is room; returns its id or 0.
    pub fn adopt(&mut self, now: Instant, random: u64, session: Session) -> i32 {
        match self.room(now, session.entries.len()) {
            Room::Free => {}
            Room::InsteadOf(other) => self.end(other),
            Room::None => return 0,
        }
        let mut id = (random & 0x7fff_ffff) as i32;
        while id == 0 || self.sessions.contains_key(&id) {
            id = id.wrapping_add(1) & 0x7fff_ffff;
        }
        self.sessions.insert(id, session);
        id
    }

    /// Whether an incremental answer must name the partition; remembers that it was told.
    pub fn is_news(&mut self, session: i32, key: &PartitionKey, news: &News) -> bool {
        self.sessions.get_mut(&session).is_none_or(|session| session.tell(key, news))
    }

    /// The least recently used session gives way when it was idle for long, else the smallest one
    /// if it is smaller than the new one.
    fn room(&self, now: Instant, partitions: usize) -> Room {
        if self.sessions.len() < self.capacity {
            return Room::Free;
        }
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last_used);
        let Some((&oldest, session)) = oldest else { return Room::None };
        if now.since(session.last_used) >= EVICTION_IDLE {
            return Room::InsteadOf(oldest);
        }
        let smallest = self.sessions.iter().min_by_key(|(_, session)| session.entries.len());
        match smallest {
            Some((&id, session)) if session.entries.len() < partitions => Room::InsteadOf(id),
            _ => Room::None,
        }
    }
}

/// Where a new session would go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Free,
    InsteadOf(i32),
    None,
}

impl Session {
    /// One without partitions, that the client is yet to be told of.
    pub fn new(now: Instant, by_id: bool) -> Session {
        Session {
            epoch: next_epoch(INITIAL_EPOCH),
            by_id,
            last_used: now,
            next_place: 0,
            places: BTreeMap::new(),
            entries: BTreeMap::new(),
        }
    }

    /// A partition that the session has not yet, and what the answer says of it.
    pub fn add(&mut self, key: PartitionKey, interest: Interest, news: &News) {
        let mut entry = Entry { key, interest, told: None };
        entry.tell(news);
        self.append(entry);
    }

    fn update(&mut self, key: PartitionKey, interest: Interest) {
        match self.places.get(&key).and_then(|place| self.entries.get_mut(place)) {
            Some(entry) => {
                let name = interest.name.clone().or(entry.interest.name.take());
                entry.interest = Interest { name, ..interest };
            }
            None => self.append(Entry { key, interest, told: None }),
        }
    }

    fn forget(&mut self, key: &PartitionKey) {
        if let Some(place) = self.places.remove(key) {
            self.entries.remove(&place);
        }
    }

    fn append(&mut self, entry: Entry) {
        self.places.insert(entry.key.clone(), self.next_place);
        self.entries.insert(self.next_place, entry);
        self.next_place += 1;
    }

    /// Records what is told; true when the client does not know it yet.
    fn tell(&mut self, key: &PartitionKey, news: &News) -> bool {
        let Some(&place) = self.places.get(key) else { return true };
        let Some(entry) = self.entries.get_mut(&place) else { return true };
        let is_news = entry.tell(news);
        if news.bytes > 0
            && let Some(entry) = self.entries.remove(&place)
        {
            self.append(entry);
        }
        is_news
    }
}

impl Entry {
    fn tell(&mut self, news: &News) -> bool {
        let positions = (news.high_watermark, news.log_start_offset);
        let failed = news.error != ErrorCode::NONE;
        let is_news = news.bytes > 0 || failed || news.diverging || self.told != Some(positions);
        // After an error the next good answer is news again.
        self.told = if failed { None } else { Some(positions) };
        is_news
    }
}

fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

const INITIAL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;
const EVICTION_IDLE: std::time::Duration = std::time::Duration::from_secs(120);
/// A session with more partitions is dropped beside the loop.
const ENTRIES_DROPPED_INLINE: usize = 1000;
