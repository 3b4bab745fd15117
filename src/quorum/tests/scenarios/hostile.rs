//! Bytes that no correct member sends: an error or no effect, never a panic, never a broken law.

use bytes::Bytes;
use quorum::{Message, Quorum, Refused};

use crate::cluster::{Cluster, Random, member, settings};

/// Messages of every kind, as they travelled in a busy cluster.
fn travelled(seed: u64) -> (Cluster, Vec<(u64, Bytes)>) {
    let mut cluster = Cluster::new(seed, 3);
    cluster.elect();
    cluster.commit(b"a");
    let mut seen = Vec::new();
    for round in 0..300u64 {
        let _ = cluster.propose(Bytes::from_static(b"payload"));
        if round == 100 {
            let leader = cluster.elect();
            cluster.isolate(leader);
        }
        if round == 200 {
            cluster.cut.clear();
        }
        for id in 1..=3 {
            let now_ms = cluster.now_ms;
            cluster.node(id).quorum().tick(now_ms + 50 * round);
            while let Some(next) = cluster.node(id).pump() {
                seen.extend(next.sent);
            }
        }
        cluster.run_for(20);
    }
    (cluster, seen)
}

#[test]
fn changed_messages_never_end_a_member() {
    let (mut cluster, seen) = travelled(4);
    assert!(seen.len() > 100, "{} messages were caught", seen.len());
    let mut random = Random(99);
    let mut taken = 0;
    for round in 0..20_000 {
        let (to, bytes) = &seen[random.below(seen.len() as u64) as usize];
        let mut bytes = bytes.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.next() as u8,
                2 if at + 8 <= bytes.len() => bytes[at..at + 8].fill(0xff),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
        let Ok(message) = Message::decode(bytes.into()) else { continue };
        let disk = cluster.node(*to).disk.clone();
        let mut victim = Quorum::new(&settings(*to, round), disk.load()).expect("a sound disk");
        settle(&mut victim);
        taken += u32::from(victim.step(round, message).is_ok());
        victim.tick(0);
        victim.tick(10_000);
        settle(&mut victim);
    }
    assert!(taken > 1_000, "only {taken} changed messages got as far as the member");
}

fn settle(quorum: &mut Quorum) {
    while quorum.ready().is_some() {
        quorum.advance();
    }
}

#[test]
fn a_message_for_somebody_else_or_from_nobody_is_refused() {
    let (mut cluster, seen) = travelled(5);
    let (to, bytes) = seen.first().expect("messages");
    let other = 1 + *to % 3;
    let message = Message::decode(bytes.clone()).unwrap();
    let refused = cluster.node(other).quorum().step(0, message);
    assert_eq!(refused, Err(Refused::NotForUs));
    let mut anonymous = bytes.to_vec();
    anonymous[3..11].fill(0);
    let message = Message::decode(anonymous.into()).unwrap();
    assert_eq!(message.from(), None);
    let refused = cluster.node(*to).quorum().step(0, message);
    assert_eq!(refused, Err(Refused::Stranger { from: 0 }));
}

#[test]
fn a_leader_that_counts_on_lost_entries_is_told() {
    let mut cluster = Cluster::new(8, 3);
    let leader = cluster.elect();
    let last = cluster.commit(b"a").index;
    let victim = (1..=3).find(|id| *id != leader).expect("a follower");
    cluster.run_for(500);
    cluster.kill(victim);
    let mut disk = cluster.node(victim).disk.clone();
    disk.entries.clear();
    let mut persisted = disk.load();
    persisted.hard_state.commit = persisted.snapshot.index;
    let mut quorum = Quorum::new(&settings(victim, 1), persisted).expect("nothing contradicts it");
    cluster.run_for(200);
    let heartbeat = heartbeat_of(&mut cluster, leader, victim);
    assert_eq!(quorum.step(0, heartbeat), Err(Refused::Lost { counted: last, last: 1 }));
}

/// The next heartbeat that the leader sends.
fn heartbeat_of(cluster: &mut Cluster, leader: u64, to: u64) -> Message {
    for _ in 0..100 {
        cluster.now_ms += 50;
        let now_ms = cluster.now_ms;
        let node = cluster.node(leader);
        node.quorum().tick(now_ms);
        while let Some(round) = node.pump() {
            let messages = round.sent.into_iter().filter(|(id, _)| *id == to);
            let mut messages =
                messages.map(|(_, bytes)| Message::decode(bytes).expect("it decodes"));
            if let Some(message) = messages.find(|m| format!("{m:?}").contains("Heartbeat")) {
                assert_eq!(message.from(), Some(member(leader)));
                return message;
            }
        }
    }
    panic!("no heartbeat in five seconds");
}
