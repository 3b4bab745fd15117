"""The loads, what is read off them, and what is hoped for.

A row compares its subject with other variants, phase by phase in turns. `goals` are ratios to
those variants; above 1 always means that the subject is better. `bound` is an absolute limit of
the subject alone.
"""

from . import courses

NEVER_FLUSH = "9223372036854775807"
# A load counts as mastered, whatever the ratio, from this share of the bare prototype on.
BARE_SHARE = 0.85

# name: (broker, settings of the topic, what the tables call it)
VARIANTS = {
    "coretide": ("coretide", [], "Coretide"),
    "relaxed": ("coretide", [f"flush.messages={NEVER_FLUSH}"], "Coretide, flushing like Kafka"),
    "kafka": ("kafka", [], "Kafka, its default"),
    "kafka-flush": ("kafka", ["flush.messages=1"], "Kafka, flush.messages=1"),
    "two-slots": ("two-slots", [], "Coretide, two slots"),
    "crowded": ("crowded", [], "Coretide beside 5,000 idle partitions"),
    "spread": ("coretide", [], "Coretide, 5,000 partitions"),
}
# What measures Coretide itself.
CORETIDES = frozenset(name for name, (broker, _, _) in VARIANTS.items() if broker != "kafka")
THREE = ("coretide", "kafka", "kafka-flush")
TWO = ("coretide", "kafka")


class Metric:
    """`bare` names the finding of `coretide bench limits` that this one can come near to, and
    `bare_scale` turns its unit into this one's."""

    def __init__(self, title, unit, better, read=None, goals=None, bare=None, bound=None,
                 bare_scale=1):
        self.title, self.unit, self.better, self.read = title, unit, better, read
        self.goals, self.bare, self.bound = goals or {}, bare, bound
        self.bare_scale = bare_scale


class Row:
    """`course` measures one phase: (options, row, variant, brokers) to metric titles and values.
    `rounds_max` bounds what would take too long to repeat."""

    def __init__(self, key, title, metrics, variants=THREE, load=None, partitions=None,
                 course=courses.load, place="plain", rounds_max=None, preload=0):
        self.key, self.title, self.metrics, self.variants = key, title, metrics, list(variants)
        self.load, self.partitions, self.course, self.place = load, partitions, course, place
        self.rounds_max, self.preload = rounds_max, preload

    @property
    def subject(self):
        return self.variants[0]


def produce(connections, in_flight, *payload):
    return ["produce", "--connections", connections, "--in-flight", in_flight, *payload]


def e2e(rate):
    return ["e2e", "--connections", 8, "--rate", rate, "--record-size", "1KiB"]


def fetch(size):
    return ["consume", "--connections", 8, "--repeat", "--partition-bytes", size]


def commits(key, how, *more):
    return Row(key, f"64 groups on one core that commit 10 partitions each, {how}", [
        Metric("commits", "1/s", "more", REQUESTS, {"kafka": 2, "kafka-flush": 10}),
        Metric("p99", "ms", "less", latency("acknowledged", "p99")),
        Metric("broker CPU, for a commit", "µs", "less", cpu_per_request),
    ], load=["commit", "--connections", 64, *more, "--partitions-per-commit", 10], partitions=10,
        course=courses.commits)


def flow(direction, what):
    return lambda run: run["flow"][direction][what]


def latency(kind, percentile):
    return lambda run: run["latency_ms"][kind][percentile]


def cpu_per_gib(run):
    return run["broker"]["cpu_seconds_per_gib"]


def cpu_per_request(run):
    """Microseconds."""
    broker = run["broker"]
    return broker["cpu_seconds"] / run["flow"]["sent"]["requests"] * 1e6


def resident(run):
    return run["broker"]["resident_bytes_max"] / 1e6


MB = "MB/s"
GIB = "CPU-s/GiB"
BIG = produce(8, 5, "--batch-bytes", "64KiB")
SMALL = produce(64, 5, "--records-per-batch", 1)
SENT = flow("sent", "megabytes_per_second")
REQUESTS = flow("sent", "requests_per_second")

LIFE = [
    Row("start", "start on an empty directory to the first acknowledged record", [
        Metric("time", "s", "less", goals={"kafka": 20}, bound=0.5),
    ], TWO, course=courses.start),
    Row("restart", "the same after kill -9, with 10 GiB in 10 partitions", [
        Metric("time", "s", "less", bound=1),
    ], TWO, course=courses.restart, rounds_max=1),
    Row("idle", "running, with 8 partitions and without load", [
        Metric("CPU", "%", "less", bound=0.5),
        Metric("resident memory", "MB", "less", goals={"kafka": 10}, bound=40),
    ], TWO, course=courses.idle, rounds_max=1),
]

LOADS = [
    Row("large", "8 connections x 5 in flight, 64 KiB batches of 1 KiB records, 8 partitions", [
        Metric("throughput", MB, "more", SENT, {"kafka": 3.5, "kafka-flush": 12},
               "8 x 5 x 64 KiB, bytes"),
        Metric("broker CPU", GIB, "less", cpu_per_gib, {"kafka": 3.5, "kafka-flush": 10}),
        Metric("resident memory", "MB", "less", resident, bound=597),
        Metric("p99", "ms", "less", latency("acknowledged", "p99")),
    ], load=BIG, partitions=8),
    Row("mid", "16 connections x 5 in flight, 16 KiB batches of 1 KiB records, 16 partitions", [
        Metric("throughput", MB, "more", SENT, {"kafka": 3.5, "kafka-flush": 16},
               "16 x 5 x 16 KiB, bytes"),
    ], load=produce(16, 5, "--batch-bytes", "16KiB"), partitions=16),
    Row("small", "64 connections x 5 in flight, single records of 1 KiB, 64 partitions", [
        Metric("requests", "1/s", "more", REQUESTS, {"kafka": 4, "kafka-flush": 28},
               "64 x 5 x 1 KiB, requests"),
        Metric("p99", "ms", "less", latency("acknowledged", "p99")),
    ], load=SMALL, partitions=64),
    Row("hundred", "16 connections x 5 in flight, 16 KiB batches of 100-byte records", [
        # What is bare moves the same bytes and knows of no records: 110 bytes each, on the wire.
        Metric("records", "1/s", "more", flow("sent", "records_per_second"),
               {"kafka": 3.5, "kafka-flush": 16}, "16 x 5 x 16 KiB, bytes", bare_scale=1e6 / 110),
    ], load=produce(16, 5, "--batch-bytes", "16KiB", "--record-size", 100), partitions=16),
    Row("thousand", "1,000 partitions, 40 connections x 2 in flight, 25 partitions a request, "
        "16 KiB each", [
            Metric("throughput", MB, "more", SENT, {"kafka": 2.5, "kafka-flush": 12},
                   "40 x 2 x 25 x 16 KiB, bytes"),
        ], load=produce(40, 2, "--batch-bytes", "16KiB", "--partitions-per-request", 25),
        # The first batch of each of so many partitions takes a broker seconds.
        partitions=1000, preload=128),
    Row("single", "1 connection, 1 in flight, single records of 1 KiB", [
        Metric("p50", "ms", "less", latency("acknowledged", "p50"),
               {"kafka": 0.5, "kafka-flush": 3}, "1 x 1 x 1 KiB, p50"),
        Metric("p99", "ms", "less", latency("acknowledged", "p99")),
    ], load=produce(1, 1, "--records-per-batch", 1), partitions=1),
    Row("single-relaxed", "the same, Coretide with Kafka's own flush setting", [
        Metric("p50", "ms", "less", latency("acknowledged", "p50"), {"kafka": 1.25},
               "1 x 1 x 1 KiB to the page cache, p50"),
    ], ("relaxed", "kafka"), produce(1, 1, "--records-per-batch", 1), 1),
    Row("e2e-2000", "end to end at 2,000 records/s of 1 KiB over 8 partitions", [
        Metric("p50", "ms", "less", latency("delivered", "p50")),
        Metric("p99", "ms", "less", latency("delivered", "p99"), {"kafka": 4, "kafka-flush": 10}),
        Metric("p99.9", "ms", "less", latency("delivered", "p99.9"),
               {"kafka": 6, "kafka-flush": 10}),
    ], load=e2e(2000), partitions=8),
    Row("e2e-5000", "end to end at 5,000 records/s of 1 KiB over 8 partitions", [
        Metric("p50", "ms", "less", latency("delivered", "p50")),
        Metric("p99", "ms", "less", latency("delivered", "p99"), {"kafka": 4}),
        Metric("p99.9", "ms", "less", latency("delivered", "p99.9"), {"kafka": 6}),
    ], TWO, e2e(5000), 8),
    Row("fetch-64k", "hot fetch, answers of 64 KiB, 8 connections", [
        Metric("throughput", MB, "more", flow("received", "megabytes_per_second"),
               {"kafka": 1.5}),
        Metric("broker CPU", GIB, "less", cpu_per_gib, {"kafka": 1.5}),
    ], TWO, fetch("64KiB"), 8, preload=256),
    Row("fetch-1m", "hot fetch, answers of 1 MiB, 8 connections", [
        Metric("throughput", MB, "more", flow("received", "megabytes_per_second"), {"kafka": 1}),
        Metric("broker CPU", GIB, "less", cpu_per_gib, {"kafka": 1}),
    ], TWO, fetch("1MiB"), 8, preload=256),
    commits("commits", "one commit at a time"),
    commits("commits-in-flight", "5 commits in flight", "--in-flight", 5),
    Row("fan-out", "one tail read by 8 consumers at once, written at 150,000 records/s of 1 KiB", [
        Metric("broker CPU, for GiB out", GIB, "less", goals={"kafka": 1}),
        Metric("throughput out", MB, "more"),
    ], TWO, partitions=8, course=courses.fan_out),
    Row("neighbour", "10 single records a second beside one connection with 100 requests of "
        "64 KiB in flight", [
            Metric("p99 of the slow one", "ms", "less", bound=10),
        ], TWO, partitions=8, course=courses.neighbour, rounds_max=1),
    Row("neighbour-churn", "the same while 50 clients a second come and go in every manner", [
        Metric("p99 of the slow one", "ms", "less", bound=10),
    ], TWO, partitions=8, course=courses.neighbour_and_visitors, rounds_max=1),
    Row("spread", "20,000 single records of 1 KiB a second: over 5,000 partitions, against 64", [
        Metric("p99", "ms", "less", latency("acknowledged", "p99"), {"coretide": 1 / 3}),
        Metric("broker CPU", GIB, "less", cpu_per_gib),
    ], ("spread", "coretide"), course=courses.spread,
        load=produce(64, 5, "--records-per-batch", 1, "--rate", 20000)),
    Row("crowded", "the first load beside 5,000 idle partitions, against 8", [
        Metric("throughput", MB, "more", SENT, {"coretide": 0.95}),
    ], ("crowded", "coretide"), BIG, 8, course=courses.crowded),
    Row("two-slots", "20,000 single records of 1 KiB a second: two slots, against one", [
        Metric("broker CPU, for a record", "µs", "less", cpu_per_request, {"coretide": 1 / 1.05}),
    ], ("two-slots", "coretide"), [*SMALL, "--rate", 20000], 64, course=courses.two_slots),
    Row("tool-produce", "kafka-producer-perf-test: 1 KiB records, batch.size 64 KiB", [
        Metric("throughput", MB, "more"),
        Metric("p99", "ms", "less"),
    ], partitions=8, course=courses.producer_perf_test, rounds_max=1),
    Row("tool-consume", "kafka-consumer-perf-test: one member of a group, 1 KiB records", [
        Metric("throughput while fetching", MB, "more"),
    ], TWO, partitions=8, course=courses.consumer_perf_test, rounds_max=1),
    Row("tool-e2e", "kafka-e2e-latency: one record of 1 KiB at a time", [
        Metric("p50", "ms", "less"),
        Metric("p99", "ms", "less"),
    ], partitions=1, course=courses.end_to_end_latency, rounds_max=1),
    Row("tool-rdkafka", "librdkafka (perf/librdkafka): 1 KiB records, its default batches", [
        Metric("throughput", MB, "more"),
        Metric("p99", "ms", "less"),
    ], partitions=8, course=courses.librdkafka, rounds_max=1),
    Row("throttled", "64 x 5 x 1 KiB on a disk of 3,000 writes/s and 250 MB/s", [
        Metric("requests", "1/s", "more", REQUESTS, {"kafka": 1, "kafka-flush": 30}),
    ], load=SMALL, partitions=64, place="throttled"),
    Row("cold", "fetch of cold data ten times as large as the page cache may be, 1 MiB answers, "
        "beside 50,000 records/s of 1 KiB", [
            Metric("throughput", MB, "more", goals={"kafka": 1}),
            Metric("producers' p99, with readers to without", "x", "less", bound=1.5),
        ], TWO, partitions=8, course=courses.cold, place="little-memory", rounds_max=1),
]

ROWS = LIFE + LOADS
