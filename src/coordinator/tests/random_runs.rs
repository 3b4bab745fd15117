//! Members that come, go, fall silent and commit, with restarts in between; after every step the
//! live state is the replayed one, no ticket is answered twice, and nobody of an old generation
//! commits.

use std::collections::BTreeMap;

use coordinator::Ticket;
use protocol::{ErrorCode, Str};

use crate::bench::{Bench, joining, syncing};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A client as far as it knows.
#[derive(Default)]
struct Client {
    id: Str,
    generation: i32,
    joining: Option<Ticket>,
    syncing: Option<Ticket>,
    /// Of the leader: whom it has to assign to.
    members: Vec<Str>,
}

#[derive(Default)]
struct Reached {
    shared: usize,
    commits: usize,
    refused: usize,
    restarts: usize,
}

#[test]
fn live_and_replayed_state_are_one() {
    let mut reached = Reached::default();
    for seed in 1..=300 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let one = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        reached.shared += one.shared;
        reached.commits += one.commits;
        reached.refused += one.refused;
        reached.restarts += one.restarts;
    }
    let Reached { shared, commits, refused, restarts } = reached;
    let least = [shared, commits, refused, restarts].into_iter().min();
    assert!(least >= Some(100), "{shared} {commits} {refused} {restarts}");
}

fn run(seed: u64) -> Reached {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut bench = Bench::new();
    bench.settings.initial_rebalance_delay_ms = random.below(2) as i64 * 3_000;
    let mut clients: Vec<Client> = (0..4).map(|_| Client::default()).collect();
    let mut reached = Reached::default();
    let mut model: BTreeMap<i32, i64> = BTreeMap::new();
    for step in 0..200 {
        let at = random.below(4) as usize;
        step_of(&mut bench, &mut clients[at], &mut random, (&mut reached, &mut model, step));
        clients.iter_mut().for_each(|client| hear(&mut bench, client));
        if random.below(60) == 0 {
            bench.restart();
            reached.restarts += 1;
            // Connections are lost with the process, and so is a generation that was announced and
            // not assigned yet.
            let known = bench.coordinator.durable_state().groups;
            let known = known.values().next().map_or(0, |group| group.generation);
            for client in &mut clients {
                (client.joining, client.syncing) = (None, None);
                client.generation = if client.generation > known { 0 } else { client.generation };
            }
        }
        bench.check_replay();
        for (partition, offset) in &model {
            assert_eq!(bench.committed("g", "t", *partition), Some(*offset), "seed {seed}");
        }
    }
    let stable = clients.iter().filter(|it| it.generation > 0).count();
    reached.shared += usize::from(stable > 1);
    reached
}

fn step_of(
    bench: &mut Bench,
    client: &mut Client,
    random: &mut Random,
    (reached, model, step): (&mut Reached, &mut BTreeMap<i32, i64>, i64),
) {
    let waits = client.joining.is_some() || client.syncing.is_some();
    match random.below(10) {
        0..=3 if !waits => client.joining = Some(bench.join(5, &joining("g", &client.id))),
        4..=5 if !waits && client.generation > 0 => {
            let shares: Vec<_> = client.members.iter().map(|it| (&**it, &**it)).collect();
            let sync = syncing("g", &client.id, client.generation, &shares);
            client.syncing = Some(bench.sync(&sync));
        }
        6 => {
            let partition = random.below(3) as i32;
            let stale = random.below(3) == 0;
            let generation = client.generation - i32::from(stale);
            if generation < 1 {
                return;
            }
            let error = bench.commit("g", &client.id, generation, ("t", partition, step), "");
            if error == ErrorCode::NONE {
                assert!(!stale, "a commit of an old generation was taken");
                model.insert(partition, step);
                reached.commits += 1;
            } else {
                reached.refused += 1;
            }
        }
        7 if client.generation > 0 => {
            let error = bench.beat("g", &client.id, client.generation);
            if error == ErrorCode::UNKNOWN_MEMBER_ID {
                *client = Client { joining: client.joining, ..Client::default() };
            }
        }
        8 if !client.id.is_empty() && random.below(3) == 0 => {
            bench.leave("g", &client.id.clone());
            *client = Client::default();
        }
        _ => bench.pass(random.below(4_000) as i64),
    }
}

fn hear(bench: &mut Bench, client: &mut Client) {
    if let Some(answer) = client.joining.and_then(|ticket| bench.joined(ticket)) {
        client.joining = None;
        match answer.error_code {
            ErrorCode::NONE => {
                client.id = answer.member_id;
                client.generation = answer.generation_id;
                client.members = answer.members.into_iter().map(|it| it.member_id).collect();
            }
            ErrorCode::MEMBER_ID_REQUIRED => client.id = answer.member_id,
            ErrorCode::REBALANCE_IN_PROGRESS => {}
            _ => *client = Client::default(),
        }
    }
    if let Some(answer) = client.syncing.and_then(|ticket| bench.synced(ticket)) {
        client.syncing = None;
        if answer.error_code == ErrorCode::NONE && !answer.assignment.is_empty() {
            // The leader gives every member its own name: nobody has another's share.
            assert_eq!(answer.assignment, client.id.as_bytes());
        }
    }
}
