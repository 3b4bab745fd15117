//! Members of consumer groups that come, go, fall silent, lose answers, change their minds and
//! commit, with restarts in between and topics that change; at no time do two members own one
//! partition, and every few steps the live state is compared with the replayed one.

use std::collections::BTreeMap;

use protocol::messages::consumer_group_heartbeat::ConsumerGroupHeartbeatResponse;
use protocol::{ErrorCode, Str};

use crate::bench::{Bench, text};
use crate::consumer_bench::{Consumer, check_disjoint};
use crate::world::{cluster, id, with_topic, without_topic};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[derive(Default)]
struct Reached {
    assigned: usize,
    fenced: usize,
    commits: usize,
    stale: usize,
    restarts: usize,
    settled: usize,
}

#[test]
fn nobody_shares_a_partition_and_live_state_is_replayed_state() {
    let mut all = Reached::default();
    for seed in 1..=100 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let one = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        all.assigned += one.assigned;
        all.fenced += one.fenced;
        all.commits += one.commits;
        all.stale += one.stale;
        all.restarts += one.restarts;
        all.settled += one.settled;
    }
    let Reached { assigned, fenced, commits, stale, restarts, settled } = all;
    let least = [assigned, fenced, commits, stale, restarts, settled].into_iter().min();
    assert!(least >= Some(60), "{assigned} {fenced} {commits} {stale} {restarts} {settled}");
}

fn run(seed: u64) -> Reached {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut bench = Bench::new();
    bench.image = with_topic(&cluster(), "t", 1, 5);
    if random.below(2) == 0 {
        let key = "consumer.assignment.interval.ms";
        bench.image = crate::world::with_group_config(&bench.image, "g", key, "1000");
    }
    let mut members: Vec<Consumer> = (0..4).map(|at| member(at, 0, &mut random)).collect();
    let mut reached = Reached::default();
    let mut model: BTreeMap<i32, i64> = BTreeMap::new();
    for step in 0..150 {
        let at = random.below(4) as usize;
        match random.below(20) {
            0..=10 => beat(&mut bench, &mut members, at, &mut random, &mut reached),
            11..=12 => {
                commit(&mut bench, (&members, at), &mut random, &mut reached, &mut model, step)
            }
            13 if members[at].epoch > 0 => {
                let for_a_while = members[at].instance.is_some() && random.below(2) == 0;
                bench.leave_consumer(&members[at], if for_a_while { -2 } else { -1 });
                members[at] = member(at, step, &mut random);
            }
            14 => change_topics(&mut bench, &mut random),
            15 => {
                bench.restart();
                reached.restarts += 1;
            }
            _ => bench.pass(random.below(20_000) as i64),
        }
        if step % 3 == 0 {
            bench.check_replay();
        }
        for (partition, offset) in &model {
            assert_eq!(bench.committed("g", "t", *partition), Some(*offset));
        }
    }
    reached.settled += usize::from(settle(&mut bench, &mut members));
    reached
}

fn member(at: usize, life: i64, random: &mut Random) -> Consumer {
    let topics: &[&str] = [&["t"][..], &["t", "u"], &["u"]][random.below(3) as usize];
    let name = format!("m{at}-{life}");
    match at {
        0 => Consumer::of_instance(&name, "i", topics),
        1 => Consumer { pattern: Some(text("[tu]")), ..Consumer::new(&name, &[]) },
        _ => Consumer::new(&name, topics),
    }
}

/// Sends a heartbeat whose answer may get lost.
fn beat(
    bench: &mut Bench,
    members: &mut [Consumer],
    at: usize,
    random: &mut Random,
    reached: &mut Reached,
) {
    let mut request = members[at].request();
    if random.below(10) == 0 && members[at].epoch > 0 {
        members[at].topics = vec![text("u")];
        request.subscribed_topic_names = Some(members[at].topics.clone());
    }
    let answer = bench.send(&request);
    if answer.error_code == ErrorCode::NONE && random.below(8) == 0 {
        members[at].lost = true;
        return;
    }
    hear(bench, members, at, &answer, reached);
}

fn hear(
    bench: &mut Bench,
    members: &mut [Consumer],
    at: usize,
    answer: &ConsumerGroupHeartbeatResponse,
    reached: &mut Reached,
) {
    match answer.error_code {
        ErrorCode::NONE => {
            members[at].hear(answer);
            reached.assigned += usize::from(answer.assignment.is_some());
        }
        // A static member is the same one as long as it lives; others wait for its session to end.
        ErrorCode::UNRELEASED_INSTANCE_ID => {}
        _ => {
            reached.fenced += 1;
            members[at].epoch = 0;
            members[at].owned.clear();
        }
    }
    // Whoever was taken out without knowing still believes to own; only members count.
    let current: Vec<Consumer> =
        members.iter().filter(|it| bench.knows(&it.id, it.epoch)).cloned().collect();
    check_disjoint(&current);
}

fn commit(
    bench: &mut Bench,
    (members, at): (&[Consumer], usize),
    random: &mut Random,
    reached: &mut Reached,
    model: &mut BTreeMap<i32, i64>,
    step: i64,
) {
    let older = random.below(3) == 0;
    let member = &members[at];
    let epoch = member.epoch - i64::from(older) as i32;
    if epoch < 1 {
        return;
    }
    match bench.commit_as(member, epoch, step) {
        ErrorCode::NONE => {
            let owner = members.iter().find(|it| it.owned.contains(&(id(1), 0)));
            let other = owner.filter(|it| it.id != member.id && bench.knows(&it.id, it.epoch));
            assert!(other.is_none() || !older, "{member:?} commits what {other:?} owns");
            model.insert(0, step);
            reached.commits += 1;
        }
        _ => reached.stale += 1,
    }
}

fn change_topics(bench: &mut Bench, random: &mut Random) {
    let u = bench.image.topic("u").map(|it| it.partitions.len() as i32);
    let image = match u {
        Some(_) if random.below(3) == 0 => without_topic(&bench.image, 2),
        Some(count) if count > 8 => return,
        count => with_topic(&bench.image, "u", 2, count.unwrap_or(0) + 2),
    };
    bench.change_topics(image, &["u"]);
}

/// Once everybody only beats, every partition that somebody wants has an owner.
fn settle(bench: &mut Bench, members: &mut [Consumer]) -> bool {
    let mut reached = Reached::default();
    for _ in 0..60 {
        bench.pass(2_000);
        for at in 0..members.len() {
            let answer = bench.send(&members[at].request());
            hear(bench, members, at, &answer, &mut reached);
        }
    }
    let wanted = members.iter().any(|it| it.topics.contains(&text("t")));
    let owned = members.iter().flat_map(|it| &it.owned).filter(|(topic, _)| *topic == id(1));
    assert!(!wanted || owned.count() == 5, "{members:?}");
    assert_eq!(bench.state_of("g"), "consumer Stable");
    true
}

impl Bench {
    /// Whether the group has this member at this epoch.
    fn knows(&mut self, member: &Str, epoch: i32) -> bool {
        let group = text("g");
        let shown = self.act(|it, world| {
            (coordinator::Output::default(), it.describe_consumer_group(world, &group))
        });
        shown.members.iter().any(|it| it.member_id == *member && it.member_epoch == epoch)
    }
}
