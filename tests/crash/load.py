"""Writers that remember what was acknowledged, and the check that a log holds it: once, in place, in order.

A batch is known by the hash of its bytes from the checksum on, which a broker never changes. Idempotent writers repeat
what was in flight when the connection broke, with the same sequence numbers, and must end up with every batch exactly
once; plain writers go on with new ones, and a batch whose fate is unknown may be there once or not at all.
"""
import hashlib
import random
import struct
import threading
import time

from kit.report import check
from kit.wire import Closed, Cluster, Connection, Malformed, Shift, Silent, batches, crc32c
from kit.wire import fetch_body, produce_body, record, varint

IN_FLIGHT_MAX = 5
FILLERS = {size: random.Random(size).randbytes(size) for size in (0, 100, 700, 4000, 15000, 60000)}
FILLER_CRCS = {size: (crc32c(filler), Shift(size)) for size, filler in FILLERS.items()}
RETRIABLE = {3, 5, 6, 7, 56, 74, 75, 100}  # not served here or not now: the writer asks again


def identity(data):
    """The hash by which a batch is known, from its checksum on."""
    return hashlib.blake2b(data[17:], digest_size=16).digest()


class Ledger:
    """What was sent and what became of it, over all writers of one topic."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent, self.acked = {}, {}

    def send(self, key, writer, partition, number, count):
        with self.lock:
            self.sent[key] = (writer, partition, number, count)

    def acknowledge(self, key, offset):
        with self.lock:
            known = self.acked.setdefault(key, offset)
        check(known == offset, f"{self.sent[key]} was acknowledged at {known} and at {offset}")


class Writer(threading.Thread):
    """One producer on one partition, up to five batches in flight over one connection."""

    API, EXCUSED = "Produce", RETRIABLE

    def __init__(self, name, topic, partition, ledger, idempotent, seed):
        super().__init__(daemon=True)
        self.label, self.topic, self.partition, self.ledger = name, topic, partition, ledger
        self.idempotent, self.random = idempotent, random.Random(seed)
        self.producer, self.number, self.sequence = None, 0, 0
        self.pending = []  # batches not yet acknowledged, oldest first: (identity, bytes, count)
        self.pause, self.done, self.fault = threading.Event(), False, None
        self.bootstrap, self.acknowledged, self.acks, self.refusals, self.last_error = None, 0, [], {}, None
        self.largest = max(FILLERS)

    def run(self):
        while not self.done:
            if not self.pending and not self.pause.wait(0.2):
                continue
            try:
                self.session()
            except (Closed, Silent, Malformed, OSError, KeyError) as error:
                self.last_error = error
                if not self.idempotent:
                    self.pending = []
                time.sleep(0.02)
            except Exception as error:  # anything else is a finding
                self.fault = f"{self.label}: {type(error).__name__}: {error}"
                return

    def session(self):
        """Finds the leader and writes to it until the connection breaks or the writer is paused."""
        cluster = Cluster(self.bootstrap, timeout=5)
        try:
            leader = cluster.nodes[cluster.leaders(self.topic)[self.partition]]
            if not self.has_identity(cluster):
                return
        finally:
            cluster.close()
        with Connection(leader, timeout=5) as connection:
            refused, _ = self.write(connection)
            if refused:
                if not self.idempotent:
                    self.pending = []
                time.sleep(0.02)

    def has_identity(self, cluster):
        """False when it has to be asked for again."""
        if self.idempotent and self.producer is None:
            answer = cluster.any().ask("InitProducerId", {"producer": -1, "epoch": -1, "timeout": 60000})
            if answer["error"] == 0:
                self.producer = (answer["producer"], answer["epoch"])
        return self.producer is not None or not self.idempotent

    def write(self, connection):
        """Writes until it is paused. Returns the answer that said no, if there was one, and how many are still to come."""
        for _, data, _ in self.pending:
            self.transmit(connection, data)
        in_flight = len(self.pending)
        while self.pause.is_set() and not self.done or in_flight:
            while self.pause.is_set() and not self.done and in_flight < IN_FLIGHT_MAX:
                self.transmit(connection, self.create())
                in_flight += 1
            part = self.receive(connection)
            in_flight -= 1
            if part["error"] in self.EXCUSED:
                self.refusals[part["error"]] = self.refusals.get(part["error"], 0) + 1
                return part, in_flight
            key, _, _ = self.pending[0]
            check(part["error"] == 0, f"batch {self.ledger.sent[key]} was refused with {part['error']}: {part['message']}")
            self.pending.pop(0)
            self.ledger.acknowledge(key, part["offset"])
            self.acknowledged += 1
            self.acks.append(time.monotonic())
        return None, 0

    def transmit(self, connection, data):
        connection.send(self.API, produce_body(self.topic, self.partition, data))

    def receive(self, connection):
        return connection.receive(self.API, timeout=20)["topics"][0]["partitions"][0]

    def create(self):
        size = self.random.choice([s for s in FILLERS if s <= self.largest])
        count = self.random.choice((1, 1, 2, 5, 20)) if size <= 700 else 1
        records = b"".join(record(index, f"{self.label}/{self.number}/{index}".encode()) for index in range(count - 1))
        # The last record ends with the filler as its value's tail, so that its checksum comes from the table.
        text = f"{self.label}/{self.number}/{count - 1}/".encode()
        body = b"\0" + varint(0) + varint(count - 1) + varint(-1) + varint(len(text) + size) + text
        tail = FILLERS[size] + varint(0)
        records += varint(len(body) + len(tail)) + body
        producer, epoch = self.producer if self.idempotent else (-1, -1)
        sequence = self.sequence if self.idempotent else -1
        head = struct.pack(">hiqqqhii", 0, count - 1, 0, 0, producer, epoch, sequence, count) + records
        filler_crc, shift = FILLER_CRCS[size]
        crc = crc32c(varint(0), shift.join(crc32c(head), filler_crc))
        data = struct.pack(">qiibI", 0, 9 + len(head) + len(tail), -1, 2, crc) + head + tail
        key = identity(data)
        self.ledger.send(key, self.label, self.partition, self.number, count)
        self.pending.append((key, data, count))
        self.number += 1
        self.sequence = (self.sequence + count) & 0x7FFFFFFF
        return data


class Load:
    """A topic, a plain and an idempotent writer on each of its partitions, and their ledger."""

    def __init__(self, topic, partitions, seed, largest=60000):
        self.topic, self.partitions, self.ledger = topic, partitions, Ledger()
        self.writers = [Writer(f"{kind}{partition}", topic, partition, self.ledger, kind == "idempotent", seed + partition)
                        for partition in range(partitions) for kind in ("plain", "idempotent")]
        for writer in self.writers:
            writer.largest = largest
            writer.start()

    def resume(self, bootstrap):
        for writer in self.writers:
            writer.bootstrap = bootstrap
            writer.pause.set()

    def suspend(self):
        """Asks the writers to settle what is in flight and stop."""
        for writer in self.writers:
            writer.pause.clear()

    def settle(self, bootstrap, within=60):
        """Lets idempotent writers repeat what was in flight until nothing is; new batches may follow."""
        self.resume(bootstrap)
        deadline = time.monotonic() + within
        marks = [writer.acknowledged for writer in self.writers]
        while any(writer.acknowledged == mark for writer, mark in zip(self.writers, marks)):
            self.healthy()
            check(time.monotonic() < deadline, f"no progress within {within} s: {self.complaints()}")
            time.sleep(0.02)
        self.suspend()
        while any(writer.pending for writer in self.writers):
            self.healthy()
            check(time.monotonic() < deadline, f"batches stay unacknowledged: {self.complaints()}")
            time.sleep(0.02)

    def healthy(self):
        faults = [writer.fault for writer in self.writers if writer.fault]
        check(not faults, "\n".join(faults))

    def complaints(self):
        """What keeps writers from being done."""
        return ", ".join(f"{w.label}: {len(w.pending)} pending, refused {w.refusals}, {w.last_error!r}"
                         for w in self.writers if w.pending or w.refusals)

    def acknowledged(self):
        return len(self.ledger.acked)

    def stop(self):
        for writer in self.writers:
            writer.done = True
            writer.pause.set()
        for writer in self.writers:
            writer.join(30)

    def verify(self, bootstrap):
        """Reads every partition from its start and holds it against the ledger. Returns the number of batches."""
        with self.ledger.lock:
            sent, acked = dict(self.ledger.sent), dict(self.ledger.acked)
        cluster = Cluster(bootstrap)
        leaders, seen, last = cluster.leaders(self.topic), {}, {}
        check(len(leaders) == self.partitions, f"{len(leaders)} of {self.partitions} partitions are left")
        for partition in range(self.partitions):
            for each in self.read(cluster, leaders, partition):
                key = identity(each.data)
                check(key in sent, f"partition {partition}, offset {each.base}: a batch that nobody sent")
                writer, where, number, count = sent[key]
                place = f"batch {number} of {writer} at {partition}:{each.base}"
                check(where == partition, f"{place} was sent to partition {where}")
                check(key not in seen, f"{place} is there twice, first at {seen.get(key)}")
                check(acked.get(key, each.base) == each.base, f"{place} was acknowledged at {acked.get(key)}")
                check(number > last.get(writer, -1), f"{place} comes after {last.get(writer)}")
                seen[key], last[writer] = each.base, number
        lost = [(sent[key], offset) for key, offset in acked.items() if key not in seen]
        check(not lost, f"{len(lost)} of {len(acked)} acknowledged batches are lost, such as {sorted(lost)[:3]}")
        cluster.close()
        return len(seen)

    def read(self, cluster, leaders, partition):
        end = cluster.end(self.topic, partition, leaders)
        offset = cluster.end(self.topic, partition, leaders, timestamp=-2)
        check(offset == 0, f"partition {partition} starts at {offset}")
        while offset < end:
            answer = cluster.to(leaders[partition]).ask("Fetch", fetch_body(self.topic, partition, offset))
            part = answer["topics"][0]["partitions"][0]
            check(part["error"] == 0, f"reading {partition}:{offset}: error {part['error']}")
            found = list(batches(part["records"]))
            check(found, f"nothing at {partition}:{offset} below the end {end}")
            for each in found:
                check(each.base == offset, f"partition {partition}: {each.base} where {offset} was due")
                offset = each.base + each.last_delta + 1
                yield each


def first_acknowledged(bootstrap, topic, deadline):
    """Produces one record until it is acknowledged; for timing how soon a restarted broker serves."""
    data = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + record(0, b"probe")
    data = struct.pack(">qiibI", 0, 9 + len(data), -1, 2, crc32c(data)) + data
    while True:
        try:
            cluster = Cluster(bootstrap, timeout=5)
            leader = cluster.leaders(topic)[0]
            part = cluster.to(leader).ask("Produce", produce_body(topic, 0, data), timeout=5)["topics"][0]["partitions"][0]
            cluster.close()
            if part["error"] == 0:
                return time.monotonic()
            error = f"error {part['error']}"
        except (Closed, Silent, Malformed, OSError, KeyError) as failure:
            error = f"{type(failure).__name__} {failure}"
        check(time.monotonic() < deadline, f"no acknowledged produce in time: {error}")
        time.sleep(0.005)
