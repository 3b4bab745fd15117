"""Members of groups that commit, come and go while a broker is killed, and the check of what they were told.

Offsets of a group and partition only ever grow, whoever commits them. So after a crash the broker has to know at least
the last offset that was acknowledged, and nothing that nobody sent. Nobody may be given a partition that another has in
the same generation.
"""
import random
import threading
import time
import uuid

from kit.report import check
from kit.wire import Closed, Cluster, Connection, Malformed, Silent, new_name

SESSION_MS, REBALANCE_MS = 3000, 3000


class Refused(Exception):
    """The answer has an error code."""


def refused(error):
    if error:
        raise Refused(error)


class Register:
    """What was committed for one group: sent and acknowledged, and who was given what."""

    def __init__(self, partitions):
        self.lock = threading.Lock()
        self.sent, self.acknowledged = dict.fromkeys(range(partitions), 0), dict.fromkeys(range(partitions), 0)
        self.owners, self.commits, self.generation = {}, 0, 0
        # Partition -> the member that works on it and when it was last heard, across generations.
        self.holders = {}
        self.came, self.went, self.refusals = 0, 0, {}

    def next(self, partition):
        with self.lock:
            self.sent[partition] += 1
            return self.sent[partition]

    def acknowledge(self, partition, offset):
        with self.lock:
            self.acknowledged[partition] = max(self.acknowledged[partition], offset)
            self.commits += 1

    def own(self, generation, partition, member):
        with self.lock:
            owner = self.owners.setdefault((generation, partition), member)
            self.generation = max(self.generation, generation)
        check(owner == member, f"partition {partition} has two owners in generation {generation}: {owner} and {member}")

    def hold(self, partitions, member):
        """The member works on exactly these; nobody else may, unless its session could be over."""
        now = time.monotonic()
        with self.lock:
            self.let_go(member)
            for partition in partitions:
                holder, heard = self.holders.get(partition, (member, now))
                check(holder == member or now - heard > SESSION_MS / 2000,
                      f"{member} was given partition {partition}, which {holder} has not given up")
                self.holders[partition] = (member, now)

    def let_go(self, member):
        for partition in [each for each, (holder, _) in self.holders.items() if holder == member]:
            del self.holders[partition]

    def note(self, error):
        with self.lock:
            self.refusals[error] = self.refusals.get(error, 0) + 1


class Member(threading.Thread):
    """One member of a group: it joins, commits what it is given, leaves, and joins again."""

    OUTDATED = set()  # it is none any more, and joins as another
    BEHIND = None     # the group goes on, and it has to follow

    def __init__(self, load, group, seed, instance=None):
        super().__init__(daemon=True)
        self.load, self.group, self.random, self.instance = load, group, random.Random(seed), instance
        self.register = load.registers[group]
        self.fault, self.last_error = None, None
        self.forget()

    def run(self):
        while not self.load.done:
            try:
                with self.coordinator() as connection:
                    while not self.load.done:
                        self.step(connection)
            except (Closed, Silent, Malformed, OSError, Refused) as error:
                self.last_error = error
                if isinstance(error, Refused):
                    self.register.note(error.args[0])
                    if error.args[0] in self.OUTDATED:
                        self.forget()
                time.sleep(0.02)
            except Exception as error:  # anything else is a finding
                self.fault = f"a member of {self.group}: {type(error).__name__}: {error}"
                return

    def coordinator(self):
        with Connection(self.load.bootstrap, timeout=5) as connection:
            found = connection.ask("FindCoordinator", {"kind": 0, "keys": [self.group]}, timeout=5)["coordinators"][0]
        refused(found["error"])
        return Connection((found["host"], found["port"]), timeout=5)

    def name_in_group(self):
        """A static member that comes back under another id is who it was, and keeps its share."""
        return self.instance or self.id

    def step(self, connection):
        """Joins if it has to, else commits something; now and then it goes, and some go without a word."""
        try:
            if not self.is_in():
                self.enter(connection)
                if self.is_in():
                    self.register.came += self.is_new
                    self.is_new = False
            elif self.random.random() < self.load.restlessness:
                self.register.went += 1
                if self.random.random() >= self.load.rudeness:
                    self.leave(connection)
                self.forget()
            else:
                self.beat(connection)
                self.commit(connection)
                time.sleep(0.005)
        except Refused as error:
            if error.args[0] != self.BEHIND:
                raise
            self.follow()

    def commit(self, connection):
        for partition in self.owned:
            offset = self.register.next(partition)
            body = commit_body(self.group, self.load.topic, partition, offset, self.generation, self.id, self.instance)
            answer = connection.ask("OffsetCommit", body, timeout=20)
            refused(answer["topics"][0]["partitions"][0]["error"])
            self.register.acknowledge(partition, offset)


class Committer(Member):
    """In the classic protocol."""

    # Unknown, of another generation, or another came under its instance id.
    OUTDATED = {22, 25, 82}
    BEHIND = 27

    def forget(self):
        self.id, self.generation, self.owned, self.is_new = "", -1, [], True

    def is_in(self):
        return self.generation >= 0

    def follow(self):
        self.generation = -1  # and join again, as the same member

    def enter(self, connection):
        body = {"group": self.group, "session": SESSION_MS, "rebalance": REBALANCE_MS, "member": self.id,
                "instance": self.instance, "type": "consumer", "protocols": [{"name": "turns", "metadata": b""}]}
        answer = connection.ask("JoinGroup", body, timeout=20)
        self.id = answer["member"] or self.id
        if answer["error"] == 79:
            return
        refused(answer["error"])
        names = sorted(each["member"] for each in answer["members"])
        turns = [{"member": name, "assignment": packed(range(index, self.load.partitions, len(names)))}
                 for index, name in enumerate(names)]
        synced = connection.ask("SyncGroup", {
            "group": self.group, "generation": answer["generation"], "member": self.id, "instance": self.instance,
            "type": "consumer", "protocol": "turns", "assignments": turns}, timeout=20)
        refused(synced["error"])
        self.generation, self.owned = answer["generation"], list(synced["assignment"])
        for partition in self.owned:
            self.register.own(self.generation, partition, self.name_in_group())

    def beat(self, connection):
        body = {"group": self.group, "generation": self.generation, "member": self.id, "instance": self.instance}
        refused(connection.ask("Heartbeat", body)["error"])

    def leave(self, connection):
        connection.ask("LeaveGroup", {"group": self.group, "members": [{"member": self.id, "instance": self.instance}]})


class Consumer(Member):
    """In the consumer protocol; the epoch stands for the generation."""

    # Unknown, or fenced by its epoch: it gives up what it has and joins again.
    OUTDATED = {25, 110}
    # A stale epoch: the next heartbeat tells the new one.
    BEHIND = 113

    def forget(self):
        if self.is_in():
            with self.register.lock:
                self.register.let_go(self.name_in_group())
        self.id, self.generation = str(uuid.UUID(int=self.random.getrandbits(128))), 0
        self.owned, self.is_new = [], True

    def is_in(self):
        return getattr(self, "generation", 0) > 0

    def follow(self):
        pass

    def heartbeat(self, connection, epoch):
        owned = [{"id": self.load.topic_id, "partitions": self.owned}] if self.owned else []
        return connection.ask("ConsumerGroupHeartbeat", {
            "group": self.group, "member": self.id, "instance": self.instance, "epoch": epoch, "rebalance": REBALANCE_MS,
            "topics": [self.load.topic], "owned": owned}, timeout=20)

    def enter(self, connection):
        self.beat(connection)

    def beat(self, connection):
        answer = self.heartbeat(connection, self.generation)
        refused(answer["error"])
        self.generation, given = answer["epoch"], answer["assignment"]
        if given is not None:
            self.owned = [each for topic in given["topics"] for each in topic["partitions"]]
        self.register.hold(self.owned, self.name_in_group())
        for partition in self.owned:
            self.register.own(self.generation, partition, self.name_in_group())

    def leave(self, connection):
        with self.register.lock:
            self.register.let_go(self.name_in_group())
        # A static member may say that it comes back, and keeps its share for that long.
        self.heartbeat(connection, -2 if self.instance and self.random.random() < 0.5 else -1)


def packed(partitions):
    return bytes(partitions)


def commit_body(group, topic, partition, offset, generation=-1, member="", instance=None):
    return {"group": group, "generation": generation, "member": member, "instance": instance, "topics": [
        {"name": topic, "partitions": [{"partition": partition, "offset": offset, "epoch": -1, "metadata": ""}]}]}


class GroupLoad:
    """Several groups with members that do not rest, over a topic that exists. Of those that go, a part (`rudeness`) says
    nothing; every third is a static member where `statics` says so."""

    def __init__(self, bootstrap, topic, partitions, groups, members, seed, restlessness=0.02, kind=Committer, rudeness=0.0,
                 statics=False):
        self.bootstrap, self.topic, self.partitions, self.done = bootstrap, topic, partitions, False
        self.restlessness, self.rudeness = restlessness, rudeness
        self.registers = {new_name("committing"): Register(partitions) for _ in range(groups)}
        cluster = Cluster(bootstrap)
        self.topic_id = cluster.refresh([topic])["topics"][0]["id"]
        cluster.close()
        self.members = [kind(self, group, seed + index, f"seat-{index}" if statics and index % 3 == 0 else None)
                        for index in range(members) for group in self.registers]
        for member in self.members:
            member.start()

    def healthy(self):
        faults = [member.fault for member in self.members if member.fault]
        check(not faults, "\n".join(faults))

    def commits(self):
        return sum(register.commits for register in self.registers.values())

    def goes_on(self, within):
        """Waits until every group has committed something more; returns how long it took."""
        began = time.monotonic()
        marks = {group: register.commits for group, register in self.registers.items()}
        while any(register.commits == marks[group] for group, register in self.registers.items()):
            self.healthy()
            idle = [group for group, register in self.registers.items() if register.commits == marks[group]]
            check(time.monotonic() - began < within, f"groups stand still for {within} s: {idle}, "
                                                     f"{[m.last_error for m in self.members if m.group in idle]}")
            time.sleep(0.005)
        return time.monotonic() - began

    def verify(self):
        """Asks for what is committed, while members go on, and holds it against what was acknowledged before."""
        cluster = Cluster(self.bootstrap)
        for group, register in self.registers.items():
            with register.lock:
                acknowledged = dict(register.acknowledged)
            found = committed(cluster, group, self.topic)
            for partition, offset in acknowledged.items():
                known, sent = found.get(partition, 0), register.sent[partition]
                check(offset <= known <= sent, f"{group}, partition {partition}: {offset} was acknowledged, {sent} sent last, "
                                               f"and the broker knows {known}")
        cluster.close()
        return self.commits()

    def stop(self):
        self.done = True
        for member in self.members:
            member.join(30)
        self.healthy()


def committed(cluster, group, topic):
    """Partition -> offset, as the coordinator of the group has it."""
    deadline = time.monotonic() + 30
    while True:
        found = cluster.any().ask("FindCoordinator", {"kind": 0, "keys": [group]})["coordinators"][0]
        if found["error"] == 0:
            answer = cluster.to(found["node"]).ask("OffsetFetch", {"groups": [{"group": group, "epoch": -1, "topics": None}]})
            if answer["groups"][0]["error"] == 0:
                topics = answer["groups"][0]["topics"]
                return {each["partition"]: each["offset"] for one in topics if one["name"] == topic for each in one["partitions"]}
        check(time.monotonic() < deadline, f"{group} has no coordinator")
        time.sleep(0.01)


def first_committed(bootstrap, topic, deadline):
    """Commits once, as a simple consumer, until it is acknowledged; for timing how soon a restarted broker serves groups."""
    while True:
        try:
            cluster = Cluster(bootstrap, timeout=5)
            found = cluster.any().ask("FindCoordinator", {"kind": 0, "keys": ["probe"]}, timeout=5)["coordinators"][0]
            refused(found["error"])
            answer = cluster.to(found["node"]).ask("OffsetCommit", commit_body("probe", topic, 0, 1), timeout=5)
            cluster.close()
            refused(answer["topics"][0]["partitions"][0]["error"])
            return time.monotonic()
        except (Closed, Silent, Malformed, OSError, KeyError, Refused) as failure:
            error = f"{type(failure).__name__} {failure}"
        check(time.monotonic() < deadline, f"no acknowledged commit in time: {error}")
        time.sleep(0.005)
