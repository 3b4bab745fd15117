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
NOT_NOW = {14, 15, 16, 27}  # the coordinator moves or is being loaded, or a rebalance is on
OUTDATED = {22, 25}         # the generation or the member is not what it was


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


class Committer(threading.Thread):
    """One member of a group in the classic protocol: it joins, commits what it is given, leaves, and joins again."""

    OUTDATED = OUTDATED

    def __init__(self, load, group, seed):
        super().__init__(daemon=True)
        self.load, self.group, self.random = load, group, random.Random(seed)
        self.id, self.generation, self.owned, self.fault, self.last_error = "", -1, [], None, None

    def run(self):
        while not self.load.done:
            try:
                with self.coordinator() as connection:
                    while not self.load.done:
                        self.step(connection)
            except (Closed, Silent, Malformed, OSError, Refused) as error:
                self.last_error = error
                if error.args and error.args[0] in self.OUTDATED:
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

    def forget(self):
        self.id, self.generation, self.owned = "", -1, []

    def step(self, connection):
        """Joins if it has to, else commits something; now and then it leaves."""
        try:
            if self.generation < 0:
                self.enter(connection)
            elif self.random.random() < self.load.restlessness:
                self.leave(connection)
            else:
                self.beat(connection)
                self.commit(connection)
                time.sleep(0.005)
        except Refused as error:
            if error.args[0] != 27:
                raise
            self.generation = -1  # and join again, as the same member

    def enter(self, connection):
        body = {"group": self.group, "session": SESSION_MS, "rebalance": REBALANCE_MS, "member": self.id,
                "type": "consumer", "protocols": [{"name": "turns", "metadata": b""}]}
        answer = connection.ask("JoinGroup", body, timeout=20)
        self.id = answer["member"] or self.id
        if answer["error"] == 79:
            return
        refused(answer["error"])
        names = sorted(each["member"] for each in answer["members"])
        turns = [{"member": name, "assignment": packed(range(index, self.load.partitions, len(names)))}
                 for index, name in enumerate(names)]
        synced = connection.ask("SyncGroup", {"group": self.group, "generation": answer["generation"], "member": self.id,
                                              "type": "consumer", "protocol": "turns", "assignments": turns}, timeout=20)
        refused(synced["error"])
        self.generation, self.owned = answer["generation"], list(synced["assignment"])
        for partition in self.owned:
            self.load.registers[self.group].own(self.generation, partition, self.id)

    def beat(self, connection):
        refused(connection.ask("Heartbeat", {"group": self.group, "generation": self.generation, "member": self.id})["error"])

    def commit(self, connection):
        register = self.load.registers[self.group]
        for partition in self.owned:
            offset = register.next(partition)
            body = commit_body(self.group, self.load.topic, partition, offset, self.generation, self.id)
            answer = connection.ask("OffsetCommit", body, timeout=20)
            refused(answer["topics"][0]["partitions"][0]["error"])
            register.acknowledge(partition, offset)

    def leave(self, connection):
        connection.ask("LeaveGroup", {"group": self.group, "members": [{"member": self.id}]})
        self.forget()


class Consumer(Committer):
    """One member of a group in the consumer protocol; the epoch stands for the generation."""

    # Unknown, or fenced by its epoch: it gives up what it has and joins again.
    OUTDATED = {25, 110}

    def __init__(self, load, group, seed):
        super().__init__(load, group, seed)
        self.forget()

    def forget(self):
        self.id, self.generation, self.owned = str(uuid.UUID(int=self.random.getrandbits(128))), 0, []

    def step(self, connection):
        try:
            if self.random.random() < self.load.restlessness:
                self.leave(connection)
            else:
                self.beat(connection)
                self.commit(connection)
                time.sleep(0.005)
        except Refused as error:
            if error.args[0] != 113:
                raise
            # A stale epoch: the next heartbeat tells the new one.

    def heartbeat(self, connection, epoch):
        owned = [{"id": self.load.topic_id, "partitions": self.owned}] if self.owned else []
        return connection.ask("ConsumerGroupHeartbeat", {
            "group": self.group, "member": self.id, "epoch": epoch, "rebalance": REBALANCE_MS,
            "topics": [self.load.topic], "owned": owned}, timeout=20)

    def beat(self, connection):
        answer = self.heartbeat(connection, self.generation)
        refused(answer["error"])
        self.generation, given = answer["epoch"], answer["assignment"]
        if given is not None:
            self.owned = [each for topic in given["topics"] for each in topic["partitions"]]
        for partition in self.owned:
            self.load.registers[self.group].own(self.generation, partition, self.id)

    def leave(self, connection):
        self.heartbeat(connection, -1)
        self.forget()


def packed(partitions):
    return bytes(partitions)


def commit_body(group, topic, partition, offset, generation=-1, member=""):
    return {"group": group, "generation": generation, "member": member, "topics": [
        {"name": topic, "partitions": [{"partition": partition, "offset": offset, "epoch": -1, "metadata": ""}]}]}


class GroupLoad:
    """Several groups with members that do not rest, over a topic that exists."""

    def __init__(self, bootstrap, topic, partitions, groups, members, seed, restlessness=0.02, kind=Committer):
        self.bootstrap, self.topic, self.partitions, self.done = bootstrap, topic, partitions, False
        self.restlessness = restlessness
        self.registers = {new_name("committing"): Register(partitions) for _ in range(groups)}
        cluster = Cluster(bootstrap)
        self.topic_id = cluster.refresh([topic])["topics"][0]["id"]
        cluster.close()
        self.members = [kind(self, group, seed + index) for index in range(members) for group in self.registers]
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
