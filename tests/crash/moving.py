"""Partitions that move between the cores of a host under load, and how long clients stand still.

A `Follower` writes as Kafka's clients do since KIP-951: it keeps a connection to every node and, told
NOT_LEADER_OR_FOLLOWER, sends what was not acknowledged to the node that the answer names, at once and in order.
"""
import bisect
import math
import struct
import time

from kit.report import check
from kit.wire import CALLS, Call, Cluster, Connection, Reader
from load import Ledger, Load, Writer

NOT_LEADER = 6
OFFSETS = "__consumer_offsets"
# The answer names the leader from version 10 on; what is sent is as in 9.
CALLS["ProduceFollowing"] = Call(0, 10, True, CALLS["Produce"].request, CALLS["Produce"].response)


class Follower(Writer):
    """An idempotent producer that goes where it is told the leader is, and remembers when it heard what."""

    API, EXCUSED = "ProduceFollowing", {NOT_LEADER}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.led_on = 0

    def session(self):
        cluster = Cluster(self.bootstrap, timeout=5)
        connections = {}
        try:
            node = cluster.leaders(self.topic)[self.partition]
            while not self.has_identity(cluster):
                pass
            for each, address in cluster.nodes.items():
                connections[each] = Connection(address, timeout=5)
            while node is not None:
                node = self.stay(connections[node])
        finally:
            cluster.close()
            for each in connections.values():
                each.close()

    def stay(self, connection):
        """Writes there as long as it leads; returns who does then, None when it has to be asked for."""
        refused, in_flight = self.write(connection)
        for _ in range(in_flight):
            behind = self.receive(connection)["error"]
            check(behind != 0, f"{self.label}: a batch was taken behind one that was not")
        return self.leader_in(refused) if refused else None

    def leader_in(self, part):
        hint = part.get("tags", {}).get(0)
        if hint is None:
            return None
        self.led_on += 1
        return Reader(hint).integer("i32")

    def pause_around(self, began, ended):
        """The longest time without an acknowledgement that touches this span."""
        first = max(bisect.bisect_left(self.acks, began) - 1, 0)
        times = self.acks[first:]
        last = bisect.bisect_right(times, ended) + 1
        return max((after - before for before, after in zip(times, times[1:last + 1])), default=0.0)


class FollowedLoad(Load):
    """A follower on each partition, and no one else."""

    def __init__(self, topic, partitions, seed, largest=4000):
        self.topic, self.partitions, self.ledger = topic, partitions, Ledger()
        self.writers = [Follower(f"follower{partition}", topic, partition, self.ledger, True, seed + partition)
                        for partition in range(partitions)]
        for writer in self.writers:
            writer.largest = largest
            writer.start()


def move(cluster, topic, partition, node):
    """Moves one partition; returns when it began and ended."""
    began = time.monotonic()
    answer = cluster.any().ask("AlterPartitionReassignments", {"timeout": 30000, "resize": True, "topics": [
        {"name": topic, "partitions": [{"partition": partition, "replicas": [node]}]}]})
    ended = time.monotonic()
    part = answer["topics"][0]["partitions"][0]
    check(part["error"] == 0, f"moving {topic}-{partition} to {node}: error {part['error']}, {part['message']}")
    return began, ended


def offsets_partition(group, count):
    """Which partition of the topic of committed offsets a group is kept in: Java's hash of its name."""
    code = 0
    for unit in struct.unpack(f">{len(group)}H", group.encode("utf-16-be")):
        code = (31 * code + unit) & 0xFFFFFFFF
    code = code - (1 << 32) if code >= 1 << 31 else code
    return (0 if code == -(1 << 31) else abs(code)) % count


def percentile(values, share):
    """The smallest value that is not below this share of all of them."""
    return sorted(values)[max(math.ceil(len(values) * share) - 1, 0)]
