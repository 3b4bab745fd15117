"""Hundreds of members a second come to groups and go, of both protocols, static and dynamic, some without a word; in the end
all stay. Then every group has to settle, and what its members were given has to be shared out wholly and once.
"""
import time

from kit.broker import Broker
from kit.report import check, equal
from kit.wire import Cluster, new_name
from members import REBALANCE_MS, SESSION_MS, Committer, Consumer, GroupLoad, refused

PARTITIONS = 24
MEMBERS_MAX = 20
# More than there is room for, so that some are refused at any time; a third of them is static, the others alone are too many.
MEMBERS = 36
GROUP_FULL = 81
EVENTS_PER_SECOND_GOAL = 500
# A slow or busy machine plays fewer members; they still come and go all the time.
EVENTS_PER_SECOND_MIN = 100
SETTLED_SECONDS = REBALANCE_MS / 1000 + 5
SETTINGS = ("group.initial.rebalance.delay.ms=0", f"group.min.session.timeout.ms={SESSION_MS}",
            f"group.consumer.min.session.timeout.ms={SESSION_MS}", f"group.consumer.session.timeout.ms={SESSION_MS}",
            "group.consumer.min.heartbeat.interval.ms=100", "group.consumer.heartbeat.interval.ms=100",
            "group.consumer.assignment.interval.ms=0", "group.consumer.min.assignment.interval.ms=0",
            f"group.max.size={MEMBERS_MAX}", f"group.consumer.max.size={MEMBERS_MAX}",
            # Offsets of who is away for a rebalance must not expire.
            "offsets.retention.minutes=1", "offsets.retention.check.interval.ms=500")


def churned(data, seed, seconds):
    with Broker(data, "0,1", settings=SETTINGS) as broker:
        cluster, topic = Cluster(broker.bootstrap), new_name("shared")
        cluster.create_ready(topic, PARTITIONS)
        loads = [GroupLoad(broker.bootstrap, topic, PARTITIONS, groups=1, members=MEMBERS, seed=seed + number,
                           restlessness=0.5, kind=kind, rudeness=rudeness, statics=True)
                 for number, (kind, rudeness) in enumerate(((Committer, 0.0), (Committer, 0.05), (Consumer, 0.0), (Consumer, 0.05)))]
        began, most = time.monotonic(), {}
        while time.monotonic() - began < seconds:
            time.sleep(0.25)
            check(broker.alive(), f"the broker ended by itself:\n{broker.text()[-2000:]}")
            for load in loads:
                load.healthy()
                for group in load.registers:
                    most[group] = max(most.get(group, 0), within_bounds(cluster, load, group))
        took = time.monotonic() - began
        events = tell(loads, took, most)
        for load in loads:
            load.restlessness = 0.0
        settled(cluster, loads)
        for load in loads:
            load.verify()
            load.stop()
            for group, register in load.registers.items():
                check(register.refusals.get(GROUP_FULL), f"{group} was never full: {register.refusals}")
        cluster.close()
        check(events / took >= EVENTS_PER_SECOND_MIN, f"{events / took:.0f} members came and went a second")
        equal("exit code", broker.stop(), 0)


def tell(loads, took, most):
    events = 0
    for load in loads:
        for group, register in load.registers.items():
            events += register.came + register.went
            print(f"        {load.members[0].__class__.__name__:9} {'rude' if load.rudeness else 'polite'}: "
                  f"{register.came} came, {register.went} went, generation {register.generation}, "
                  f"{register.commits} commits, at most {most[group]} members, refusals {register.refusals}", flush=True)
    print(f"        {events / took:.0f} came or went a second, over {took:.0f} s (goal {EVENTS_PER_SECOND_GOAL})", flush=True)
    return events


def described(cluster, load, group):
    """State, and of each member whether it is a static one, and its partitions."""
    ask = cluster.to(coordinator(cluster, group)).ask
    if isinstance(load.members[0], Consumer):
        answer = ask("ConsumerGroupDescribe", {"groups": [group]})["groups"][0]
    else:
        answer = ask("DescribeGroups", {"groups": [group]})["groups"][0]
    refused(answer["error"])
    return answer["state"].lower(), [(each["instance"] is not None, given(each["assignment"])) for each in answer["members"]]


def given(assignment):
    """The partitions: of the consumer protocol by topic, of the classic one as the leader has written them."""
    if isinstance(assignment, dict):
        return [part for one in assignment["topics"] for part in one["partitions"]]
    return list(assignment)


def coordinator(cluster, group):
    found = cluster.any().ask("FindCoordinator", {"kind": 0, "keys": [group]})["coordinators"][0]
    refused(found["error"])
    return found["node"]


def within_bounds(cluster, load, group):
    """Nobody gets in beyond the limit; while members gather, those of before may still be counted. In a classic group a static
    member that does not come again when the others gather stays until its session ends, and its place is not kept free.
    """
    state, members = described(cluster, load, group)
    dynamic = sum(1 for is_static, _ in members if not is_static)
    may_stay = 0 if isinstance(load.members[0], Consumer) else sum(1 for member in load.members if member.instance)
    if state == "preparingrebalance":
        check(len(members) <= 2 * MEMBERS_MAX, f"{group} has {len(members)} members while {state}")
    else:
        check(dynamic <= MEMBERS_MAX, f"{group} has {dynamic} dynamic members while {state}")
        check(len(members) <= MEMBERS_MAX + may_stay, f"{group} has {len(members)} members while {state}")
    return len(members)


def settled(cluster, loads):
    """Waits until every group is stable, with each partition at exactly one member and as many members as may be."""
    began = time.monotonic()
    left = {group: load for load in loads for group in load.registers}
    while left:
        for group, load in list(left.items()):
            load.healthy()
            state, members = described(cluster, load, group)
            shared = sorted(part for _, share in members for part in share)
            if state == "stable" and shared == list(range(PARTITIONS)) and len(members) == MEMBERS_MAX:
                print(f"        {load.members[0].__class__.__name__:9} settled after {time.monotonic() - began:.1f} s", flush=True)
                del left[group]
            else:
                late = time.monotonic() - began > SETTLED_SECONDS
                check(not late, f"{group} is {state} {SETTLED_SECONDS} s after the last came: {len(members)} members, {shared}")
        time.sleep(0.05)
