"""H43 to H45: members that are none, groups that cannot be, leaders that lie."""
import time

from room import Connection, case, check, new_name

I32_MAX = (1 << 31) - 1
MIB = 1 << 20
SESSION_MS = 10000
PENDING_MAX = 10_000


class Group:
    """A group as one client speaks of it, over a connection to its coordinator."""

    def __init__(self, room, name=None):
        self.room, self.id = room, new_name("group") if name is None else name
        self.connection = Connection(self.find())

    def find(self):
        deadline = time.monotonic() + 30
        while True:
            found = self.room.ask("FindCoordinator", {"keys": [self.id]})["coordinators"][0]
            if found["error"] == 0:
                return f"{found['host']}:{found['port']}"
            check(found["error"] in (14, 15, 16) and time.monotonic() < deadline, f"no coordinator: {found}")
            time.sleep(0.05)

    def ask(self, api, timeout=30, **body):
        answer = self.connection.ask(api, {"group": self.id, **body}, timeout)
        while answer.get("error") in (14, 15, 16):
            time.sleep(0.05)
            answer = self.connection.ask(api, {"group": self.id, **body}, timeout)
        return answer

    def join(self, member="", session=SESSION_MS, kind="consumer", protocols=(("a", b"x"),), **more):
        return self.ask("JoinGroup", session=session, rebalance=session, member=member, type=kind,
                        protocols=[{"name": name, "metadata": metadata} for name, metadata in protocols], **more)

    def enter(self, **how):
        """Joins and synchronises as the only member; returns its id and the generation."""
        first = self.join(**how)
        check(first["error"] == 79 and first["member"], f"a join without a member id: {first}")
        joined = self.join(first["member"], **how)
        check(joined["error"] == 0 and joined["leader"] == first["member"], f"a join: {joined}")
        synced = self.sync(first["member"], joined["generation"], {first["member"]: b"all"})
        check(synced["error"] == 0 and synced["assignment"] == b"all", f"a sync: {synced}")
        return first["member"], joined["generation"]

    def sync(self, member, generation, assignments=None, **more):
        given = [{"member": name, "assignment": share} for name, share in (assignments or {}).items()]
        names = {"type": "consumer", "protocol": "a", **more}
        return self.ask("SyncGroup", generation=generation, member=member, assignments=given, **names)

    def beat(self, member, generation, **more):
        return self.ask("Heartbeat", member=member, generation=generation, **more)["error"]

    def leave(self, member):
        return self.ask("LeaveGroup", members=[{"member": member}])

    def commit(self, topic, offset=1, partition=0, member="", generation=-1, metadata="", **more):
        parts = [{"partition": partition, "offset": offset, "epoch": -1, "metadata": metadata}]
        answer = self.ask("OffsetCommit", member=member, generation=generation,
                          topics=[{"name": topic, "partitions": parts}], **more)
        return answer["topics"][0]["partitions"][0]["error"]

    def committed(self, topic, partition=0):
        asked = {"group": self.id, "epoch": -1, "topics": [{"name": topic, "partitions": [partition]}]}
        answer = self.ask("OffsetFetch", groups=[asked])["groups"][0]
        check(answer["error"] == 0, f"a fetch of offsets: {answer}")
        return answer["topics"][0]["partitions"][0]["offset"]

    def described(self):
        return self.ask("DescribeGroups", groups=[self.id])["groups"][0]

    def state(self):
        return self.described()["state"]


@case("H43")
def groups_without_a_name(room):
    group = Group(room, "")
    for what, error in (("join", group.join()["error"]), ("sync", group.sync("m", 1)["error"]),
                        ("heartbeat", group.beat("m", 1)), ("leave", group.leave("m")["error"])):
        check(error == 24, f"{what}: error {error}")
    topic = room.topic()
    check(group.commit(topic, 7) == 0 and group.committed(topic) == 7, "a commit for the group without a name")


@case("H43")
def group_names_of_all_kinds(room):
    topic = room.topic()
    for name in ("a" * 30000, "naïve ☃", "a\0b", "../../etc/passwd", " ", "\r\n", "%s%n", "__consumer_offsets"):
        group = Group(room, f"{name}{new_name('')}")
        member, generation = group.enter()
        check(group.commit(topic, 3, member=member, generation=generation) == 0, f"a commit for {name[:20]!r}")
        check(group.committed(topic) == 3, f"what {name[:20]!r} committed")
        group.leave(member)


@case("H43")
def session_timeouts_out_of_range(room):
    for session in (0, -1, -(1 << 31), 1, I32_MAX, 1_800_001):
        error = Group(room).join(session=session)["error"]
        check(error == 26, f"a session of {session} ms: error {error}")


@case("H43")
def members_that_are_none(room):
    topic = room.topic()
    group = Group(room)
    for what, error in (("join", group.join("nobody")["error"]), ("sync", group.sync("nobody", 1)["error"]),
                        ("heartbeat", group.beat("nobody", 1)), ("leave", group.leave("nobody")["members"][0]["error"])):
        check(error == 25, f"{what} in no group: error {error}")
    member, generation = group.enter()
    for name in ("nobody", "", f"{member}x", member[:-1], "a" * 30000):
        for what, error in (("sync", group.sync(name, generation)["error"]), ("heartbeat", group.beat(name, generation)),
                            ("leave", group.leave(name)["members"][0]["error"]),
                            ("commit", group.commit(topic, member=name, generation=generation))):
            check(error == 25, f"{what} as {name[:40]!r}: error {error}")
    check(group.join("nobody")["error"] == 25, "a join as nobody")
    check(group.commit(topic) == 25, "a commit by nobody while there are members")
    check(group.beat(member, generation) == 0, "the member is still one")
    check(group.committed(topic) == -1, "nothing was committed")


@case("H43")
def generations_that_are_over_or_not_yet(room):
    topic = room.topic()
    group = Group(room)
    member, generation = group.enter()
    for other in (generation - 1, generation + 1, 0, -1, I32_MAX, -(1 << 31)):
        for what, error in (("sync", group.sync(member, other)["error"]), ("heartbeat", group.beat(member, other)),
                            ("commit", group.commit(topic, member=member, generation=other))):
            check(error == 22, f"{what} in generation {other}: error {error}")
    check(group.commit(topic, 5, member=member, generation=generation) == 0, "a commit in its own generation")
    check(group.committed(topic) == 5, "what was committed")


@case("H43")
def protocols_that_do_not_fit(room):
    for what, how in (("no type", {"kind": ""}), ("no protocols", {"protocols": ()})):
        error = Group(room).join(**how)["error"]
        check(error == 23, f"{what}: error {error}")
    group = Group(room)
    member, generation = group.enter()
    for what, how in (("another type", {"kind": "connect"}), ("another protocol", {"protocols": (("b", b""),)}),
                      ("no protocols", {"protocols": ()})):
        for name in ("", member):
            error = group.join(name, **how)["error"]
            check(error == 23, f"{what} as {name!r}: error {error}")
    error = group.sync(member, generation, type="connect", protocol="a")["error"]
    check(error == 23, f"a sync of another type: error {error}")
    error = group.sync(member, generation, type="consumer", protocol="b")["error"]
    check(error == 23, f"a sync of another protocol: error {error}")
    check(group.beat(member, generation) == 0, "the member is still one")


@case("H43")
def instances_that_are_taken(room):
    topic = room.topic()
    group = Group(room)
    first = group.join(instance="i")
    check(first["error"] == 0, f"a static join: {first}")
    old, generation = first["member"], first["generation"]
    check(group.sync(old, generation, {old: b"all"}, instance="i")["error"] == 0, "a static sync")
    again = group.join(instance="i")
    check(again["error"] == 0 and again["member"] != old, f"a second join of one instance: {again}")
    for what, error in (("heartbeat", group.beat(old, generation, instance="i")),
                        ("sync", group.sync(old, generation, instance="i")["error"]),
                        ("join", group.join(old, instance="i")["error"]),
                        ("commit", group.commit(topic, member=old, generation=generation, instance="i"))):
        check(error == 82, f"{what} of the one that was replaced: error {error}")
    for what, error in (("heartbeat", group.beat(again["member"], again["generation"], instance="j")),
                        ("commit", group.commit(topic, member=again["member"], generation=again["generation"], instance="j"))):
        check(error == 25, f"{what} as an instance that is none: error {error}")


@case("H43")
def commits_that_cannot_be(room):
    topic = room.topic()
    group = Group(room)
    check(group.commit(topic, metadata="x" * 4096) == 0, "metadata of 4,096 characters")
    check(group.commit(topic, metadata="x" * 4097) == 12, "metadata of 4,097 characters")
    check(group.commit(topic, metadata="x" * 30000) == 12, "metadata of 30,000 characters")
    check(group.commit(topic, metadata=None) == 0, "no metadata")
    for partition in (-1, 1, I32_MAX, -(1 << 31)):
        error = group.commit(topic, partition=partition)
        check(error == 3, f"partition {partition}: error {error}")
    for name in ("", new_name("missing"), "../x", "a" * 250):
        error = group.commit(name)
        check(error == 3, f"topic {name[:20]!r}: error {error}")
    for offset in (-5, -1, (1 << 63) - 1, -(1 << 63), 0):
        check(group.commit(topic, offset) == 0, f"a commit of {offset}")
        found = group.committed(topic)
        check(found == offset, f"{offset} was committed, {found} is known")
    error = group.commit(topic, generation=5)
    check(error == 25, f"a generation in a group without members: error {error}")
    error = Group(room).commit(topic, generation=5)
    check(error == 69, f"a generation in no group: error {error}")


@case("H43", ours=True)
def a_group_that_is_full(room):
    """The broker is started with group.max.size=50."""
    if not room.broker:
        return
    group = Group(room)
    member, generation = group.enter()
    check(group.beat(member, generation) == 0, "the first member")
    others = [Group(room, group.id) for _ in range(60)]
    ids = [other.join()["member"] for other in others]
    check(all(ids), "everyone is given an id")
    for other, given in zip(others, ids):
        other.connection.send("JoinGroup", {"group": group.id, "session": SESSION_MS, "rebalance": SESSION_MS,
                                            "member": given, "type": "consumer",
                                            "protocols": [{"name": "a", "metadata": b""}]})
    room.until("50 more have joined", lambda: len(group.described()["members"]) == 51)
    # The room is taken by those who came before it asked again; they need not wait for those who did not get in.
    error = group.join(member)["error"]
    check(error == 81, f"the first member joins again: error {error}")
    answers = [other.connection.receive("JoinGroup", timeout=5) for other in others]
    errors = [answer["error"] for answer in answers]
    check(sorted(set(errors)) == [0, 81] and errors.count(0) == 50, f"{errors.count(0)} others joined: {set(errors)}")
    check(max(len(answer["members"]) for answer in answers) == 50, "members that the leader is told of")


@case("H44")
def joins_without_end(room):
    """Clients that ask for a member id again and again and never join."""
    before, group = room.rss(), Group(room)
    body = {"group": group.id, "session": SESSION_MS, "rebalance": SESSION_MS, "type": "consumer",
            "protocols": [{"name": "a", "metadata": b"x" * 1000}]}
    errors = {}
    for _ in range(150):
        for _ in range(100):
            group.connection.send("JoinGroup", body)
        for _ in range(100):
            error = group.connection.receive("JoinGroup")["error"]
            errors[error] = errors.get(error, 0) + 1
    check(set(errors) <= {79, 81}, f"errors {errors}")
    check(not room.broker or errors[79] <= PENDING_MAX, f"{errors[79]} member ids were given out")
    room.grows_at_most(before, 32 * MIB, "15,000 joins that came to nothing")
    group.connection.close()


@case("H44")
def subscriptions_that_are_huge(room):
    before = room.rss()
    for size in (1, 20):
        group = Group(room)
        for _ in range(4):
            answer = group.join(protocols=(("a", bytes(size * MIB)),))
            check(answer["error"] in (79, 81), f"a subscription of {size} MiB: error {answer['error']}")
        group.connection.close()
    room.grows_at_most(before, 96 * MIB, "huge subscriptions of nobody")


@case("H44")
def subscriptions_that_no_record_can_hold(room):
    topic, neighbour = room.topic(), Group(room)
    member, generation = neighbour.enter()
    for what, subscribed, given in (("a subscription", 2 * MIB, 1), ("a larger one", 40 * MIB, 1), ("an assignment", 1, 2 * MIB)):
        group = Group(room)
        protocols = (("a", bytes(subscribed)),)
        first = group.join(protocols=protocols)["member"]
        joined = group.join(first, protocols=protocols)
        check(joined["error"] == 0, f"{what}: a join got error {joined['error']}")
        error = group.sync(first, joined["generation"], {first: bytes(given)})["error"]
        check(error == -1, f"{what}: a sync got error {error}")
        check(group.beat(first, joined["generation"]) == 27, f"{what}: the group gathers anew")
        group.leave(first)
        group.connection.close()
    check(neighbour.beat(member, generation) == 0, "another group")
    check(neighbour.commit(topic, member=member, generation=generation) == 0, "a commit of another group")


@case("H44")
def protocols_without_end(room):
    group = Group(room)
    many = [(f"p{index}", b"") for index in range(5000)]
    first = group.join(protocols=many)
    check(first["error"] == 79, f"5,000 protocols: error {first['error']}")
    joined = group.join(first["member"], protocols=many)
    check(joined["error"] == 0, f"5,000 protocols: error {joined['error']}")
    group.leave(first["member"])


@case("H45")
def leaders_that_lie(room):
    group = Group(room)
    first = group.join()
    member = group.join(first["member"])
    lies = {"nobody": b"x" * 1000, "": b"y", first["member"]: b"mine", "a" * 30000: b"z"}
    synced = group.sync(first["member"], member["generation"], lies)
    check(synced["error"] == 0 and synced["assignment"] == b"mine", f"a sync with members that are none: {synced}")
    described = group.described()
    check([each["member"] for each in described["members"]] == [first["member"]], f"members: {described['members']}")
    again = group.sync(first["member"], member["generation"], {first["member"]: b"other"})
    check(again["assignment"] == b"mine", f"a second assignment in a generation: {again}")
    group.leave(first["member"])


@case("H45")
def members_that_lead_unasked(room):
    """A follower hands in an assignment, a leader forgets a member."""
    group, other = Group(room), None
    leader, _ = group.enter()
    other = Group(room, group.id)
    follower = other.join()["member"]
    body = {"group": group.id, "session": SESSION_MS, "rebalance": SESSION_MS, "member": follower, "type": "consumer",
            "protocols": [{"name": "a", "metadata": b"y"}]}
    other.connection.send("JoinGroup", body)
    room.until("a rebalance begins", lambda: group.state() == "PreparingRebalance")
    joined = group.join(leader)
    generation = joined["generation"]
    check(other.connection.receive("JoinGroup")["generation"] == generation, "both are in one generation")
    other.connection.send("SyncGroup", {"group": group.id, "generation": generation, "member": follower, "type": "consumer",
                                          "protocol": "a", "assignments": [
        {"member": leader, "assignment": b"nothing"}, {"member": follower, "assignment": b"all"}]})
    synced = group.sync(leader, generation, {leader: b"all"})
    check(synced["assignment"] == b"all", f"the leader's own: {synced}")
    answer = other.connection.receive("SyncGroup")
    check(answer["error"] == 0 and answer["assignment"] == b"", f"what a follower gave itself: {answer}")


@case("H45")
def questions_about_groups_without_end(room):
    group = Group(room)
    began = time.monotonic()
    answer = group.ask("DescribeGroups", groups=[group.id] * 20000)
    check(len(answer["groups"]) >= 1 and {each["state"] for each in answer["groups"]} == {"Dead"}, "a group that is none")
    asked = {"group": group.id, "epoch": -1, "topics": [{"name": f"t{index % 100}", "partitions": list(range(100))}
                                                       for index in range(500)]}
    answer = group.ask("OffsetFetch", groups=[asked])
    check(answer["groups"][0]["error"] == 0, f"offsets of 50,000 partitions: {answer['groups'][0]['error']}")
    answer = group.ask("LeaveGroup", members=[{"member": f"m{index}"} for index in range(20000)])
    check({each["error"] for each in answer["members"]} == {25}, "20,000 that leave and never were")
    check(not room.broker or time.monotonic() - began < 10, "the answers take their time")
