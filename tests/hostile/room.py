"""The room in which hostile cases are played: a broker, a steady neighbour that must not notice, and the words.

A case is a function with a name that begins with its number. `@case("H1")` registers it; `ours=True` marks the answers
that Apache Kafka gives differently or not at all, which are left out when the suite runs against Kafka.
"""
import struct
import time

from kit.report import check
from kit.wire import CALLS, Call, Closed, Cluster, Connection, Malformed, Reader, Silent, batch, decode, encode
from kit.wire import fetch_body, frame, header, new_name, produce_body, request
from neighbour import Neighbour

CLOSED, SILENT = "closed", "silent"
NEIGHBOUR_SECONDS_MAX = 1.0
CASES = []

CALLS["Fetch13"] = Call(1, 13, True, [
    ("replica", "i32"), ("max_wait", "i32"), ("min_bytes", "i32"), ("max_bytes", "i32"), ("isolation", "i8"),
    ("session", "i32"), ("epoch", "i32"),
    ("topics", [("id", "uuid"), ("partitions", [("partition", "i32"), ("leader_epoch", "i32"), ("offset", "i64"),
                                                ("fetched_epoch", "i32"), ("log_start", "i64"),
                                                ("max_bytes", "i32")])]),
    ("forgotten", [("id", "uuid"), ("partitions", "[]i32")]), ("rack", "str")],
    [("throttle", "i32"), ("error", "i16"), ("session", "i32"),
     ("topics", [("id", "uuid"),
                 ("partitions", [("partition", "i32"), ("error", "i16"), ("high_watermark", "i64"),
                                 ("last_stable", "i64"), ("log_start", "i64"),
                                 ("aborted", [("producer", "i64"), ("first", "i64")]),
                                 ("preferred", "i32"), ("records", "nbytes")])])])
CALLS["Produce6"] = Call(0, 6, False, CALLS["Produce"].request,
                         [("topics", [("name", "str"), ("partitions", [
                             ("partition", "i32"), ("error", "i16"), ("offset", "i64"), ("append_time", "i64"),
                             ("log_start", "i64")])]), ("throttle", "i32")])
CALLS["ListOffsets9"] = Call(2, 9, True, CALLS["ListOffsets"].request, CALLS["ListOffsets"].response)


def case(number, ours=False):
    def register(body):
        CASES.append((number, body.__name__.replace("_", " "), body, ours))
        return body
    return register


class Room:
    def __init__(self, bootstrap, broker=None):
        self.bootstrap, self.broker = bootstrap, broker
        self.cluster = Cluster(bootstrap)
        self.neighbour = Neighbour(bootstrap)
        self.topics = []

    def undisturbed(self):
        """The neighbour's answers came, and if this is our broker, came soon."""
        slowest = self.neighbour.report()
        check(self.neighbour.fault is None, f"the neighbour's connection: {self.neighbour.fault}")
        late = f"the neighbour waited {slowest:.3f} s for an answer"
        check(self.broker is None or slowest <= NEIGHBOUR_SECONDS_MAX, late)

    def was_served(self):
        self.neighbour.report()
        check(self.neighbour.answers > 0, "never")

    # ---- topics
    def topic(self, partitions=1, **configs):
        name = new_name("hostile")
        configs = {key.replace("_", "."): str(value) for key, value in configs.items()}
        self.leaders = self.cluster.create_ready(name, partitions, configs)
        self.topics.append(name)
        return name

    def leader(self, topic, partition=0):
        """A fresh connection to the leader of this partition."""
        return Connection(self.cluster.nodes[self.cluster.leaders(topic)[partition]])

    def end(self, topic, partition=0, timestamp=-1):
        return self.cluster.end(topic, partition, self.cluster.leaders(topic), timestamp)

    def clean(self):
        for name in self.topics:
            self.cluster.delete(name)
        self.topics = []

    # ---- raw bytes
    def outcome(self, data, timeout=5, address=None):
        """What a fresh connection gets for these bytes: CLOSED, SILENT, or the payload of the first frame."""
        with Connection(address or self.bootstrap) as connection:
            try:
                connection.write(data)
                return connection.read_frame(timeout)
            except Closed:
                return CLOSED
            except Silent:
                return SILENT

    def closes(self, what, data):
        found = self.outcome(data)
        check(found == CLOSED, f"{what}: wanted the connection closed, got {self.short(found)}")

    def served(self, what, data):
        found = self.outcome(data)
        check(isinstance(found, bytes), f"{what}: wanted an answer, got {found}")
        return found

    @staticmethod
    def short(found):
        return f"an answer of {len(found)} bytes ({found[:40].hex()})" if isinstance(found, bytes) else found

    def ask(self, api, body, connection=None, timeout=None):
        """One request on a connection of its own (or the given one) and its answer."""
        if connection:
            return connection.ask(api, body, timeout)
        with Connection(self.bootstrap) as fresh:
            return fresh.ask(api, body, timeout)

    # ---- produce and fetch
    def produce(self, topic, records, partition=0, api="Produce", acks=-1, **more):
        """(error, offset) of one partition's records."""
        with self.leader(topic, partition) as connection:
            answer = connection.ask(api, {**produce_body(topic, partition, records, acks), **more}, timeout=20)
        part = answer["topics"][0]["partitions"][0]
        return part["error"], part["offset"]

    def refuses(self, what, topic, records, *errors, **more):
        """These records are refused with one of these errors and nothing is appended."""
        before = self.end(topic)
        error, _ = self.produce(topic, records, **more)
        check(error in errors, f"{what}: wanted error {' or '.join(map(str, errors))}, got {error}")
        after = self.end(topic)
        check(after == before, f"{what}: refused, yet the log went from {before} to {after}")

    def accepts(self, what, topic, records, **more):
        error, offset = self.produce(topic, records, **more)
        check(error == 0, f"{what}: wanted success, got error {error}")
        return offset

    def fetch(self, topic, partition=0, offset=0, connection=None, **more):
        """The answer for one partition."""
        body = fetch_body(topic, partition, offset, **more)
        if connection:
            answer = connection.ask("Fetch", body, timeout=20)
        else:
            with self.leader(topic, 0) as fresh:
                answer = fresh.ask("Fetch", body, timeout=20)
        check(answer["error"] == 0, f"a fetch got error {answer['error']}")
        return answer["topics"][0]["partitions"][0]

    @staticmethod
    def until(what, condition, within=10):
        deadline = time.monotonic() + within
        while not condition():
            check(time.monotonic() < deadline, f"not within {within} s: {what}")
            time.sleep(0.01)

    # ---- memory
    def rss(self):
        return self.broker.rss() if self.broker else 0

    def grows_at_most(self, before, allowed, what):
        grown = self.rss() - before
        check(grown <= allowed, f"{what}: resident memory grew by {grown >> 10} KiB, allowed are {allowed >> 10} KiB")


__all__ = ["CALLS", "CASES", "CLOSED", "Closed", "Connection", "Malformed", "Reader", "Room", "SILENT", "Silent",
           "batch", "case", "check", "decode", "encode", "fetch_body", "frame", "header", "new_name", "produce_body",
           "request", "struct"]
