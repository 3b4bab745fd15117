//! Incremental fetch sessions (KIP-227), a value without I/O.
//!
//! A session remembers what a client wants and what it was last told, so that later requests name
//! only changes and later answers only news. Partitions are kept in the order in which they are
//! read; one that returned data goes to the end, so that none starves behind a byte limit.

use std::collections::BTreeMap;

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
#[derive(Debug, PartialEq, Eq)]
pub struct Begun {
    /// 0 when this fetch belongs to no session yet.
    pub session: i32,
    pub kind: Kind,
    /// Everything to read, in reading order.
    pub wanted: Vec<(PartitionKey, Interest)>,
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

/// The sessions of one slot.
pub struct SessionCache {
    sessions: BTreeMap<i32, Session>,
    /// max.incremental.fetch.session.cache.slots
    capacity: usize,
}

struct Session {
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
        SessionCache { sessions: BTreeMap::new(), capacity }
    }

    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// Sorts out which session a request belongs to and what it wants in all.
    ///
    /// `by_id` tells whether the request names topics by id; a session never changes between the
    /// two.
    pub fn begin(
        &mut self,
        now: Instant,
        reference: Reference,
        by_id: bool,
        wanted: Vec<(PartitionKey, Interest)>,
        forgotten: &[PartitionKey],
    ) -> Result<Begun, Refused> {
        if reference.epoch == INITIAL_EPOCH || reference.epoch == FINAL_EPOCH {
            self.sessions.remove(&reference.id);
            let kind = if reference.epoch == FINAL_EPOCH { Kind::Sessionless } else { Kind::Full };
            return Ok(Begun { session: 0, kind, wanted: without_repeats(wanted) });
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
        session.update(wanted, forgotten);
        session.epoch = next_epoch(session.epoch);
        session.last_used = now;
        let wanted = session.wanted();
        if wanted.is_empty() {
            self.sessions.remove(&reference.id);
            return Ok(Begun { session: 0, kind: Kind::Sessionless, wanted });
        }
        Ok(Begun { session: reference.id, kind: Kind::Incremental, wanted })
    }

    /// Makes a session of a full fetch if there is room; returns its id or 0. `news` tells for each
    /// wanted partition what the answer says.
    pub fn create(
        &mut self,
        now: Instant,
        random: u64,
        by_id: bool,
        wanted: &[(PartitionKey, Interest)],
        news: &[News],
    ) -> i32 {
        debug_assert_eq!(wanted.len(), news.len());
        if wanted.is_empty() || !self.make_room(now, wanted.len()) {
            return 0;
        }
        let mut session = Session {
            epoch: next_epoch(INITIAL_EPOCH),
            by_id,
            last_used: now,
            next_place: 0,
            places: BTreeMap::new(),
            entries: BTreeMap::new(),
        };
        session.update(wanted.to_vec(), &[]);
        for ((key, _), news) in wanted.iter().zip(news) {
            session.remember(key, news);
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

    /// Drops the least recently used session when it was idle for long, else the smallest one if
    /// it is smaller than the new one. False when the newcomer has to do without a session.
    fn make_room(&mut self, now: Instant, partitions: usize) -> bool {
        if self.sessions.len() < self.capacity {
            return true;
        }
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last_used);
        let Some((&oldest, session)) = oldest else { return false };
        if now.since(session.last_used) >= EVICTION_IDLE {
            self.sessions.remove(&oldest);
            return true;
        }
        let smallest = self.sessions.iter().min_by_key(|(_, session)| session.entries.len());
        match smallest {
            Some((&id, session)) if session.entries.len() < partitions => {
                self.sessions.remove(&id);
                true
            }
            _ => false,
        }
    }
}

impl Session {
    fn update(&mut self, wanted: Vec<(PartitionKey, Interest)>, forgotten: &[PartitionKey]) {
        for (key, interest) in wanted {
            match self.places.get(&key).and_then(|place| self.entries.get_mut(place)) {
                Some(entry) => {
                    let name = interest.name.clone().or(entry.interest.name.take());
                    entry.interest = Interest { name, ..interest };
                }
                None => self.append(Entry { key, interest, told: None }),
            }
        }
        for key in forgotten {
            if let Some(place) = self.places.remove(key) {
                self.entries.remove(&place);
            }
        }
    }

    fn append(&mut self, entry: Entry) {
        self.places.insert(entry.key.clone(), self.next_place);
        self.entries.insert(self.next_place, entry);
        self.next_place += 1;
    }

    fn wanted(&self) -> Vec<(PartitionKey, Interest)> {
        self.entries.values().map(|entry| (entry.key.clone(), entry.interest.clone())).collect()
    }

    /// Records what is told; true when the client does not know it yet.
    fn tell(&mut self, key: &PartitionKey, news: &News) -> bool {
        let is_news = self.remember(key, news);
        if news.bytes > 0
            && let Some(place) = self.places.get(key).copied()
            && let Some(entry) = self.entries.remove(&place)
        {
            self.append(entry);
        }
        is_news
    }

    fn remember(&mut self, key: &PartitionKey, news: &News) -> bool {
        let entry = self.places.get(key).and_then(|place| self.entries.get_mut(place));
        let Some(entry) = entry else { return true };
        let positions = (news.high_watermark, news.log_start_offset);
        let failed = news.error != ErrorCode::NONE;
        let is_news = news.bytes > 0 || failed || news.diverging || entry.told != Some(positions);
        // After an error the next good answer is news again.
        entry.told = if failed { None } else { Some(positions) };
        is_news
    }
}

/// The last mention of a partition counts, at the place of the first.
fn without_repeats(wanted: Vec<(PartitionKey, Interest)>) -> Vec<(PartitionKey, Interest)> {
    let mut places: BTreeMap<PartitionKey, usize> = BTreeMap::new();
    let mut out: Vec<(PartitionKey, Interest)> = Vec::with_capacity(wanted.len());
    for (key, interest) in wanted {
        match places.get(&key) {
            Some(&place) => out[place].1 = interest,
            None => {
                places.insert(key.clone(), out.len());
                out.push((key, interest));
            }
        }
    }
    out
}

fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

const INITIAL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;
const EVICTION_IDLE: std::time::Duration = std::time::Duration::from_secs(120);
