"""Consumer groups of real clients: members come, crash, leave and oversleep, and a checker holds what they report against
what a group promises: no partition has two owners in a generation or at a time, every record is consumed, and what was
committed in the end is where the logs end.

A member is a process: PROGRAM BOOTSTRAP GROUP TOPIC NAME STRATEGY SESSION_MS POLL_MS. It reads `stall`, `wake` and `stop`
from stdin and writes lines `EVENT MS …`, MS being wall-clock milliseconds:

    assigned MS GENERATION P,P…   these partitions were added (GENERATION is - where the client does not tell it)
    revoked MS P,P…               and these taken away; `lost` likewise. `-` stands for all it has
    got MS P OFFSET VALUE         a record; it is committed only after this line is out, again if that fails
    stalled MS / woken MS         it stops to poll, and goes on
    left MS                       it has left in order and ends
"""
import collections
import concurrent.futures
import subprocess
import threading
import time

from kit.report import Failed, check, equal
from kit.wire import Closed, Cluster, Connection, Malformed, Silent, batch, new_name, produce_body

PARTITIONS = 4
SESSION_MS, POLL_MS = 4000, 6000
PATIENCE_SECONDS = 45
SIDE_BY_SIDE = 4
Interval = collections.namedtuple("Interval", "start end owner")


def now_ms():
    return time.time() * 1000


class Story:
    """What one member has reported, line by line, and what it owns by that."""

    def __init__(self, name):
        self.name, self.owned, self.since, self.is_asleep, self.has_left = name, set(), {}, False, False
        self.intervals, self.claims, self.records, self.strange = [], [], [], []

    def hear(self, line):
        words = line.split(" ")
        event, rest = words[0], words[2:]
        if event not in ("assigned", "revoked", "lost", "got", "stalled", "woken", "left"):
            return self.strange.append(line)
        moment = float(words[1])
        if event == "got":
            self.records.append((int(rest[0]), int(rest[1]), rest[2]))
        elif event == "assigned":
            self.own(moment, rest[0], parse(rest[1]))
        elif event in ("revoked", "lost"):
            self.disown(moment, self.owned if rest[0] == "-" else parse(rest[0]))
        elif event == "stalled":
            # From here on it does nothing with what it has, and others may be given it.
            self.is_asleep = True
            self.disown(moment, self.owned)
        elif event == "woken":
            self.is_asleep = False
        else:
            self.has_left = True
            self.disown(moment, self.owned)
        return None

    def own(self, moment, generation, partitions):
        for partition in partitions - self.owned:
            self.since[partition] = moment
        self.owned = self.owned | partitions
        if generation != "-":
            self.claims += [(int(generation), partition) for partition in self.owned]

    def disown(self, moment, partitions):
        for partition in self.owned & partitions:
            self.intervals.append((partition, Interval(self.since.pop(partition), moment, self.name)))
        self.owned = self.owned - partitions


class Member(Story):
    """One client process and its story so far."""

    def __init__(self, group, name, words):
        super().__init__(name)
        self.group = group
        self.process = subprocess.Popen([str(word) for word in words], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.readers = [threading.Thread(target=self.read, args=(stream, hear), daemon=True) for stream, hear in (
            (self.process.stdout, self.hear), (self.process.stderr, self.strange.append))]
        for reader in self.readers:
            reader.start()

    def read(self, stream, hear):
        for line in stream:
            with self.group.changed:
                hear(line.rstrip("\n"))
                self.group.changed.notify_all()

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def kill(self):
        """kill -9; from just before it on nothing is owned any more."""
        moment = now_ms()
        self.process.kill()
        self.finish(moment)

    def finish(self, moment):
        self.process.wait(30)
        for reader in self.readers:
            reader.join(30)
        with self.group.changed:
            self.disown(moment, self.owned)

    def alive(self):
        return self.process.poll() is None

    def told(self):
        return f"{self.name} owns {sorted(self.owned)}, ended with {self.process.poll()}: " + " | ".join(self.strange[-3:])


def parse(text):
    return {int(word) for word in text.split(",") if word}


class Producing(threading.Thread):
    """Writes a little to every partition until told to stop, and remembers what it wrote where."""

    def __init__(self, bootstrap, topic, leaders):
        super().__init__(daemon=True)
        self.bootstrap, self.topic, self.leaders = bootstrap, topic, leaders
        self.written, self.done, self.fault = {}, threading.Event(), None

    def run(self):
        cluster, number = Cluster(self.bootstrap), 0
        try:
            while not self.done.wait(0.1):
                for partition, leader in self.leaders.items():
                    values = [f"{partition}/{number + index}" for index in range(2)]
                    data = batch([value.encode() for value in values], timestamp=int(now_ms()))
                    answer = cluster.to(leader).ask("Produce", produce_body(self.topic, partition, data))
                    part = answer["topics"][0]["partitions"][0]
                    equal("error of a produce", part["error"], 0)
                    for index, value in enumerate(values):
                        self.written[partition, part["offset"] + index] = value
                number += 2
        except Exception as error:  # told by whoever waits for it
            self.fault = f"{type(error).__name__}: {error}"
        finally:
            cluster.close()

    def stop(self):
        self.done.set()
        self.join(30)
        check(self.fault is None, f"the producer: {self.fault}")
        return self.written


class Group:
    """One group of one client and strategy, through the whole of its life."""

    def __init__(self, bootstrap, label, program, strategy):
        self.bootstrap, self.label, self.program, self.strategy = bootstrap, label, program, strategy
        self.id = new_name(f"group-{label.replace(' ', '-')}")
        self.changed, self.members = threading.Condition(), {}

    # ---- members
    def start(self, name):
        words = (*self.program, self.bootstrap, self.id, self.topic, name, self.strategy, SESSION_MS, POLL_MS)
        self.members[name] = Member(self, name, words)

    def here(self):
        return [member for member in self.members.values() if member.alive()]

    def until(self, what, condition, within=PATIENCE_SECONDS):
        deadline = time.monotonic() + within
        with self.changed:
            while not condition():
                left = deadline - time.monotonic()
                check(left > 0, f"not within {within} s: {what}\n" + "\n".join(m.told() for m in self.members.values()))
                self.changed.wait(min(left, 0.2))

    def settles(self, what, *counts):
        """Waits until the members that are awake own this many partitions each, in any order, and all of them together."""
        def settled():
            owned = [member.owned for member in self.here() if not member.is_asleep]
            return (sorted(len(each) for each in owned) == sorted(counts)
                    and set().union(*owned) == set(range(PARTITIONS)))
        self.until(what, settled)

    def owner(self):
        """Somebody who owns a partition."""
        return next(member for member in self.here() if member.owned)

    # ---- what the broker says
    def ask(self, api, body):
        """Asks the group's coordinator, again while it moves or is being loaded."""
        deadline = time.monotonic() + 30
        while True:
            try:
                with Connection(self.bootstrap) as connection:
                    found = connection.ask("FindCoordinator", {"kind": 0, "keys": [self.id]})["coordinators"][0]
                if found["error"] == 0:
                    with Connection((found["host"], found["port"])) as connection:
                        answer = connection.ask(api, body)["groups"][0]
                    if answer["error"] not in (14, 15, 16):
                        return answer
            except (Closed, Silent, OSError) as error:
                check(time.monotonic() < deadline, f"{api}: {error}")
            check(time.monotonic() < deadline, f"{api} finds no coordinator")
            time.sleep(0.1)

    def described(self):
        if self.strategy.startswith("consumer"):
            members = self.ask("ConsumerGroupDescribe", {"groups": [self.id]})["members"]
            by_pattern = self.strategy.endswith("pattern")
            check(all(bool(each["pattern"]) == by_pattern for each in members), f"patterns: {members}")
            return {each["client"] for each in members}
        return {each["client"] for each in self.ask("DescribeGroups", {"groups": [self.id]})["members"]}

    def committed(self):
        answer = self.ask("OffsetFetch", {"groups": [{"group": self.id, "epoch": -1, "topics": None}]})
        parts = [part for topic in answer["topics"] if topic["name"] == self.topic for part in topic["partitions"]]
        return {part["partition"]: part["offset"] for part in parts if part["offset"] >= 0}

    # ---- the life of it
    def live(self):
        """Returns how many records were consumed, how many of them twice, and how long the takeover took."""
        cluster = Cluster(self.bootstrap)
        self.topic = new_name("grouped")
        leaders = cluster.create_ready(self.topic, PARTITIONS)
        producing = Producing(self.bootstrap, self.topic, leaders)
        producing.start()
        try:
            took = self.come_and_go()
            written = producing.stop()
            self.until("every record is consumed", lambda: self.consumed() >= written.keys())
            self.until("everything is committed", lambda: self.committed() == ends_of(written))
            for member in self.here():
                member.tell("stop")
            for member in list(self.members.values()):
                self.ended(member)
            equal("committed after all have left", self.committed(), ends_of(written))
        finally:
            producing.done.set()
            for member in self.members.values():
                member.process.kill()
        cluster.delete(self.topic)
        cluster.close()
        judge(list(self.members.values()), written)
        total = sum(len(member.records) for member in self.members.values())
        return len(written), total - len(written), took

    def come_and_go(self):
        self.start("a")
        self.settles("the first member owns all", 4)
        self.start("b")
        self.settles("two members share", 2, 2)
        for name in ("c", "d", "e"):
            self.start(name)
        self.settles("five members on four partitions: one stands by", 0, 1, 1, 1, 1)
        began = time.monotonic()
        self.owner().kill()
        self.settles("the one that stood by takes over from the one that was killed", 1, 1, 1, 1)
        took = time.monotonic() - began
        leaver = self.owner()
        leaver.tell("stop")
        self.ended(leaver)
        check(leaver.name not in self.described(), f"{leaver.name} has left and is still a member")
        self.settles("three members after one has left", 1, 1, 2)
        sleeper = self.owner()
        sleeper.tell("stall")
        self.until(f"{sleeper.name} stalls", lambda: sleeper.is_asleep)
        self.start("f")
        self.settles("the others take over from one that does not poll", 1, 1, 2)
        sleeper.tell("wake")
        self.settles("it wakes and joins again", 1, 1, 1, 1)
        return took

    def ended(self, member):
        if not member.has_left:
            self.until(f"{member.name} leaves", lambda: member.has_left or not member.alive())
        member.finish(now_ms())

    def consumed(self):
        return consumed_by(self.members.values())


# ---------------------------------------------------------------------------------------------- the law
def judge(stories, written):
    """`written` is what was produced: (partition, offset) -> value."""
    owners = {}
    for story in stories:
        for claim in story.claims:
            other = owners.setdefault(claim, story.name)
            check(other == story.name, f"partition {claim[1]} has two owners in generation {claim[0]}: {other} and {story.name}")
        for partition, offset, value in story.records:
            wanted = written.get((partition, offset))
            check(value == wanted, f"{story.name} got {value} at {partition}:{offset}, written was {wanted}")
    for partition in range(PARTITIONS):
        found = sorted(each for story in stories for where, each in story.intervals if where == partition)
        for earlier, later in zip(found, found[1:]):
            check(later.owner == earlier.owner or later.start >= earlier.end,
                  f"partition {partition} has two owners at a time: {earlier} and {later}")
    missing = written.keys() - consumed_by(stories)
    check(not missing, f"{len(missing)} records were never consumed, such as {sorted(missing)[:3]}")


def consumed_by(stories):
    return {(partition, offset) for story in stories for partition, offset, _ in story.records}


def the_law_is_enforced():
    """Stories that keep it pass, and each that breaks it is caught."""
    def outcome(*members, written=None):
        stories = []
        for name, lines in members:
            stories.append(Story(name))
            for line in lines:
                stories[-1].hear(line)
            stories[-1].disown(100, stories[-1].owned)
        try:
            judge(stories, written or {})
        except Failed as error:
            return str(error).split(" such as")[0]
        return None

    a = ("a", ("assigned 1 1 0,1", "revoked 5 1", "assigned 6 2 ", "got 7 0 0 x"))
    equal("a partition handed over", outcome(a, ("b", ("assigned 6 2 1",)), written={(0, 0): "x"}), None)
    equal("a member that sleeps", outcome(("a", ("assigned 1 1 0", "stalled 5", "woken 9")), ("b", ("assigned 7 2 0",))), None)
    for what, members, written, wanted in (
            ("two owners in a generation", (a, ("b", ("assigned 20 2 0",))), None, "partition 0 has two owners in generation 2"),
            ("two owners at a time", (a, ("b", ("assigned 4 - 1",))), None, "partition 1 has two owners at a time"),
            ("a record that is missing", (a,), {(0, 0): "x", (1, 3): "y"}, "1 records were never consumed,"),
            ("a record that nobody wrote", (a,), {(0, 0): "y"}, "a got x at 0:0, written was y")):
        found = outcome(*members, written=written or {(0, 0): "x"})
        check(found is not None and found.startswith(wanted), f"{what}: {found}")


def ends_of(written):
    ends = {}
    for partition, offset in written:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends


def speaks_consumer_protocol(bootstrap):
    with Connection(bootstrap) as connection:
        answer = connection.ask("ApiVersions", {"software": "suite", "software_version": "1"})
    return any(each["key"] == 68 for each in answer["keys"])


def live_all(report, bootstrap, scenarios):
    """Lives through several groups side by side; one case each."""
    report.case("groups: the law is enforced", the_law_is_enforced)

    def one(scenario):
        group = Group(bootstrap, *scenario)
        label = group.label

        def body():
            records, twice, took = group.live()
            print(f"        {label}: {records} records, {twice} of them again; taken over from a killed member in "
                  f"{took:.1f} s", flush=True)
        report.case(f"groups: {label}", body)

    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(one, scenarios))
