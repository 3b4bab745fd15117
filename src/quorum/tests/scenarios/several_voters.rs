//! Elections, partitions, lossy networks and restarts of several voters.

use crate::cluster::{Cluster, member};
use bytes::Bytes;
use quorum::{Change, MembershipChange, Quorum, Role};

#[test]
fn three_members_elect_one_within_two_seconds() {
    for seed in 0..50 {
        let mut cluster = Cluster::new(seed, 3);
        let took = cluster.run_until("a leader", |cluster| cluster.leader().is_some());
        assert!(took <= 2_500, "seed {seed}: an election took {took} ms");
        cluster.commit(b"x");
    }
}

#[test]
fn followers_name_the_leader_and_refuse_proposals() {
    let mut cluster = Cluster::new(3, 3);
    let leader = cluster.elect();
    cluster.run_for(200);
    for id in 1..=3 {
        let quorum = cluster.node(id).quorum();
        assert_eq!(quorum.leader(), Some(member(leader)));
        assert_eq!(quorum.propose(Bytes::from_static(b"x")).is_ok(), id == leader);
    }
    let status = cluster.node(leader).quorum().status();
    assert_eq!((status.role, status.progress.len()), (Role::Leader, 3));
}

#[test]
fn a_killed_leader_is_replaced_and_comes_back_as_a_follower() {
    for seed in 0..20 {
        let mut cluster = Cluster::new(seed, 3);
        let first = cluster.elect();
        cluster.commit(b"before");
        cluster.kill(first);
        let took = cluster.run_until("another", |c| c.leader().is_some_and(|id| id != first));
        assert!(took <= 5_000, "seed {seed}: {took} ms without a leader");
        cluster.commit(b"after");
        cluster.start(first);
        let term =
            cluster.leader().and_then(|id| cluster.nodes[&id].quorum.as_ref()).map(Quorum::term);
        cluster.commit(b"later");
        let same =
            cluster.leader().and_then(|id| cluster.nodes[&id].quorum.as_ref()).map(Quorum::term);
        assert_eq!(term, same, "seed {seed}: the one that came back disturbed the others");
    }
}

#[test]
fn an_isolated_leader_steps_down_and_loses_what_it_proposed() {
    let mut cluster = Cluster::new(11, 3);
    let old = cluster.elect();
    cluster.commit(b"a");
    cluster.isolate(old);
    let lost = cluster.node(old).quorum().propose(Bytes::from_static(b"lost")).unwrap();
    cluster.run_until("stepped down", |c| !c.node(old).quorum().is_leader());
    cluster.run_until("another", |c| c.leader().is_some_and(|id| id != old));
    let kept = cluster.propose(Bytes::from_static(b"kept")).expect("a leader");
    cluster.run_for(200);
    cluster.cut.clear();
    cluster.settle(kept.index);
    assert_ne!(cluster.log[&lost.index].0, lost.term, "another entry took its place");
    assert_eq!(&cluster.node(old).state[..], b"akept");
}

#[test]
fn without_a_majority_nothing_is_committed() {
    let mut cluster = Cluster::new(5, 3);
    let leader = cluster.elect();
    let last = cluster.commit(b"a").index;
    for id in (1..=3).filter(|id| *id != leader) {
        cluster.kill(id);
    }
    let _ = cluster.propose(Bytes::from_static(b"b"));
    cluster.run_for(10_000);
    assert_eq!(cluster.leader(), None, "a leader without a majority steps down");
    assert!(!cluster.log.contains_key(&(last + 1)));
}

#[test]
fn a_member_that_missed_the_log_is_sent_the_snapshot() {
    let mut cluster = Cluster::new(9, 3);
    let leader = cluster.elect();
    let away = (1..=3).find(|id| *id != leader).expect("a follower");
    cluster.kill(away);
    for _ in 0..1_200 {
        cluster.propose(Bytes::from_static(b"abcdefgh")).expect("a leader");
        cluster.run_for(2);
    }
    cluster.run_for(100);
    for id in (1..=3).filter(|id| *id != away) {
        cluster.node(id).snapshot();
    }
    cluster.start(away);
    let last = cluster.commit(b"end").index;
    assert_eq!(cluster.node(away).quorum().applied().index, last);
    assert_eq!(cluster.node(away).state.len(), 1_200 * 8 + 3);
    assert!(cluster.node(away).disk.load().snapshot.index > 1_000, "it got the snapshot");
}

#[test]
fn a_host_joins_learns_votes_and_another_leaves() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(seed, 3);
        cluster.elect();
        cluster.commit(b"a");
        cluster.join(4);
        change(&mut cluster, &[Change::Learner(member(4))]);
        cluster.commit(b"b");
        assert_eq!(&cluster.node(4).state[..], b"ab", "seed {seed}");
        let leader = cluster.leader().expect("a leader");
        let leaving = (1..=3).find(|id| *id != leader).expect("a follower");
        change(&mut cluster, &[Change::Voter(member(4)), Change::Gone(member(leaving))]);
        cluster.run_until("out of the joint configuration", |cluster| {
            let members = cluster.node(leader).quorum().members().clone();
            members.outgoing.is_empty() && members.voters.len() == 3
        });
        assert!(!cluster.node(leader).quorum().members().voters.contains(&member(leaving)));
        cluster.nodes.remove(&leaving);
        let survivors: Vec<u64> =
            cluster.nodes.keys().copied().filter(|id| *id != leader).collect();
        cluster.kill(leader);
        cluster.commit(b"c");
        cluster.start(leader);
        cluster.commit(b"d");
        for id in survivors {
            assert_eq!(&cluster.node(id).state[..], b"abcd", "seed {seed}");
        }
    }
}

#[test]
fn leadership_is_handed_over_on_request() {
    let mut cluster = Cluster::new(21, 3);
    let leader = cluster.elect();
    cluster.commit(b"a");
    let next = (1..=3).find(|id| *id != leader).expect("a follower");
    cluster.node(leader).quorum().transfer_leadership(member(next));
    let took = cluster.run_until("handed over", |cluster| cluster.leader() == Some(next));
    assert!(took < 200, "a hand-over took {took} ms");
    cluster.commit(b"b");
}

#[test]
fn a_paused_member_does_not_take_its_own_sleep_for_silence() {
    let mut cluster = Cluster::new(2, 3);
    let leader = cluster.elect();
    cluster.commit(b"a");
    let term = cluster.node(leader).quorum().term();
    // Everybody sleeps for an hour at once, as when a virtual machine is paused.
    cluster.now_ms += 3_600_000;
    cluster.commit(b"b");
    assert_eq!(cluster.leader(), Some(leader));
    assert_eq!(cluster.node(leader).quorum().term(), term);
}

#[test]
fn chaos_keeps_the_laws() {
    for seed in 0..60 {
        let _ = chaos(seed);
    }
}

#[test]
fn a_seed_repeats_itself() {
    for seed in 0..5 {
        assert_eq!(chaos(seed), chaos(seed), "seed {seed}");
    }
    assert_ne!(chaos(1), chaos(2));
}

/// Twenty seconds of proposals, losses, cuts, kills and snapshots; then peace, and agreement.
fn chaos(seed: u64) -> u32 {
    let size = 1 + 2 * (1 + seed % 2);
    let mut cluster = Cluster::new(seed, size);
    cluster.lost_per_mille = 20 * (seed % 5);
    cluster.delay_ms_max = 1 + 20 * (seed % 3);
    for round in 0..1_000u32 {
        let id = 1 + cluster.random.below(size);
        match cluster.random.below(60) {
            0 => cluster.kill(id),
            1 => cluster.isolate(id),
            2 | 3 => cluster.cut.clear(),
            4 if cluster.node(id).quorum.is_some() => cluster.node(id).snapshot(),
            5..=8 if cluster.node(id).quorum.is_none() => cluster.start(id),
            _ => drop(cluster.propose(Bytes::copy_from_slice(&round.to_be_bytes()))),
        }
        let pause = cluster.random.below(40);
        cluster.run_for(pause);
    }
    cluster.cut.clear();
    cluster.lost_per_mille = 0;
    for id in 1..=size {
        if cluster.node(id).quorum.is_none() {
            cluster.start(id);
        }
    }
    cluster.commit(b"end");
    let state = cluster.node(1).state.clone();
    for id in 2..=size {
        assert_eq!(cluster.node(id).state, state, "seed {seed}: members disagree");
    }
    cluster.trace()
}

fn change(cluster: &mut Cluster, changes: &[Change]) {
    let change = MembershipChange { changes: changes.to_vec(), joint: changes.len() > 1 };
    let mut proposal = None;
    cluster.run_until("a change of members", |cluster| {
        let leader = cluster.leader();
        proposal = leader.and_then(|id| cluster.node(id).quorum().propose_members(&change).ok());
        proposal.is_some()
    });
    let index = proposal.expect("it was made").index;
    cluster.run_until("the change", |cluster| cluster.log.contains_key(&index));
}
