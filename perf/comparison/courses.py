"""How the phases of a row are measured: (options, row, variant, brokers) to values by title.

Most rows are one run of `coretide bench`; the others start brokers, run two loads side by side,
or use other people's tools.
"""

import re
import signal
import subprocess
import time

from . import phases
from .brokers import Broken, CACHE, ROOT, java, process_time, resident_megabytes
from .guests import Guest
from .phases import Bench, bench, delete_topic, settings, warm_up

VISITS_PER_SECOND = 50


def find(options, row, variant, brokers):
    """The variant's broker, running, a name for a topic, and what creates it."""
    from .rows import VARIANTS  # which in turn names the functions here

    name, configs, _ = VARIANTS.get(variant, (variant, [], variant))
    broker = brokers[name].start()
    topic = f"{row.key}-{variant}-{len(options.noise)}-{int(time.time())}"
    return broker, topic, ["--partitions", row.partitions, *settings(configs)]


def values(row, run, errors):
    found = {metric.title: metric.read(run) for metric in row.metrics}
    if errors:
        found["errors"] = errors
    return found


def span(options, broker, key):
    return ["--duration", f"{options.seconds}s", "--warm-up", f"{warm_up(options, broker, key)}s"]


def watched(broker):
    return ["--pid", broker.pid] if broker.pid else []


# -------------------------------------------------------------------------------------- one load


def load(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    if row.preload:
        bench(options, broker, topic, ["produce", "--connections", 8, "--batch-bytes", "64KiB",
                                       "--records", row.preload * 1024, *create])
        create = []
    arguments = [*row.load, *create, *watched(broker), *span(options, broker, row.key)]
    if row.load[0] == "e2e":
        (CACHE / "curves").mkdir(parents=True, exist_ok=True)
        arguments += ["--hgrm", CACHE / "curves" / f"{row.key}-{variant}.hgrm"]
    phases.remember(options, row.key, arguments)
    run, errors = bench(options, broker, topic, arguments)
    delete_topic(options, broker, topic)
    return values(row, run, errors)


def spread(options, row, variant, brokers):
    row.partitions = 5000 if variant == "spread" else 64
    return load(options, row, variant, brokers)


def crowded(options, row, variant, brokers):
    broker = brokers["crowded" if variant == "crowded" else "coretide"].start()
    if variant == "crowded" and not getattr(broker, "is_crowded", False):
        subprocess.run([str(options.coretide), "topic", "create", "idle", "--partitions", "5000",
                        "--bootstrap", broker.address], check=True, capture_output=True)
        broker.is_crowded = True
    found = load(options, row, variant, brokers)
    if variant == "crowded":
        broker.end()  # it comes back with all its partitions
    return found


def two_slots(options, row, variant, brokers):
    found = load(options, row, variant, brokers)
    if variant == "two-slots":
        brokers["two-slots"].end()
    return found


def commits(options, row, variant, brokers):
    broker, topic, _ = find(options, row, variant, brokers)
    # The topic of committed offsets comes into being by the first commit.
    bench(options, broker, topic, ["commit", "--records", row.partitions,
                                   "--partitions", row.partitions])
    flushes = "flush.messages=1" if variant.endswith("-flush") else None
    words = ["--config", flushes] if flushes else ["--delete-config", "flush.messages"]
    subprocess.run([str(options.coretide), "topic", "alter", "__consumer_offsets", *words,
                    "--bootstrap", broker.address], check=True, capture_output=True)
    arguments = [*row.load, *watched(broker), *span(options, broker, row.key)]
    phases.remember(options, row.key, arguments)
    run, errors = bench(options, broker, topic, arguments)
    delete_topic(options, broker, topic)
    return values(row, run, errors)


# -------------------------------------------------------------------------- two loads side by side


def fan_out(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    bench(options, broker, topic, ["produce", "--records", 64, "--connections", 1, *create])
    seconds = warm_up(options, broker, row.key) + options.seconds
    writing = ["produce", "--connections", 8, "--batch-bytes", "64KiB", "--rate", 150_000,
               "--duration", f"{seconds + 1}s", "--warm-up", "0s"]
    reading = ["consume", "--from", "latest", "--fan-out", 8, "--connections", 1,
               *watched(broker), "--duration", f"{options.seconds}s",
               "--warm-up", f"{seconds - options.seconds}s"]
    for arguments in (writing, reading):
        phases.remember(options, row.key, arguments)
    writer = Bench(options, broker, topic, writing)
    read, errors = bench(options, broker, topic, reading)
    written = writer.result()
    delete_topic(options, broker, topic)
    found = {"broker CPU, for GiB out": read["broker"]["cpu_seconds_per_gib"],
             "throughput out": read["flow"]["received"]["megabytes_per_second"]}
    errors = {**errors, **(written.get("errors") or {})}
    return {**found, "errors": errors} if errors else found


def neighbour(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    bench(options, broker, topic, ["produce", "--records", 8, "--connections", 1, *create])
    first = warm_up(options, broker, row.key)
    greedy = ["produce", "--connections", 1, "--in-flight", 100, "--batch-bytes", "64KiB",
              "--duration", f"{options.seconds + 1}s", "--warm-up", f"{first}s"]
    modest = ["produce", "--connections", 1, "--records-per-batch", 1, "--rate", 10,
              "--duration", f"{options.seconds}s", "--warm-up", f"{first}s"]
    for arguments in (greedy, modest):
        phases.remember(options, row.key, arguments)
    crowd = Bench(options, broker, topic, greedy)
    # It shall wait for the broker, not for the other load on its CPU.
    run = Bench(options, broker, topic, modest, nice=-15).result()
    crowd.result()
    delete_topic(options, broker, topic)
    return {"p99 of the slow one": run["latency_ms"]["acknowledged"]["p99"]}


def neighbour_and_visitors(options, row, variant, brokers):
    broker, topic, _ = find(options, row, variant, brokers)
    visited = f"{topic}-visited"
    create_topic(options, broker, visited, ["--partitions", 2])
    guest = Guest(options, "churn", broker.address, visited, VISITS_PER_SECOND)
    try:
        found = neighbour(options, row, variant, brokers)
    finally:
        guest.end()
        delete_topic(options, broker, visited)
    if not guest.seen["done"]:
        raise Broken("nobody came and went")
    return {**found, "errors": guest.seen["errors"]} if guest.seen["errors"] else found


def cold(options, row, variant, brokers):
    for name, other in brokers.items():
        if name != variant:
            other.end()
    broker, topic, create = find(options, row, variant, brokers)
    records = int(options.cold_gib * (1 << 20))
    bench(options, broker, topic, ["produce", "--connections", 8, "--batch-bytes", "64KiB",
                                   "--records", records, *create])
    phases.settle()
    fresh = f"{topic}-written"
    writing = ["produce", "--connections", 8, "--batch-bytes", "64KiB", "--rate", 50_000]
    alone, _ = bench(options, broker, fresh, [*writing, "--partitions", 8,
                                              *span(options, broker, row.key)])
    seconds = options.seconds + options.warm_up
    reading = ["consume", "--connections", 8, "--partition-bytes", "1MiB", "--repeat",
               "--duration", f"{options.seconds}s", "--warm-up", f"{options.warm_up}s"]
    for arguments in (writing, reading):
        phases.remember(options, row.key, arguments)
    reader = Bench(options, broker, topic, reading)
    beside, errors = bench(options, broker, fresh, [*writing, "--duration", f"{seconds}s",
                                                    "--warm-up", "0s"])
    read = reader.result()
    broker.wipe()
    p99 = [run["latency_ms"]["acknowledged"]["p99"] for run in (alone, beside)]
    found = {"throughput": read["flow"]["received"]["megabytes_per_second"],
             "producers' p99, with readers to without": p99[1] / p99[0]}
    return {**found, "errors": errors} if errors else found


# ------------------------------------------------------------------------------- starts and rest


def start(options, row, variant, brokers):
    broker = brokers[variant]
    broker.wipe()
    broker.prepare(pausable=False)
    broker.pause_others()
    begun = time.monotonic()
    broker.spawn()
    bench(options, broker, "first", ["produce", "--partitions", 1, "--records", 1,
                                     "--records-per-batch", 1, "--wait", "120s"])
    took = time.monotonic() - begun
    broker.wipe()
    return {"time": took}


def restart(options, row, variant, brokers):
    broker = brokers[variant]
    broker.wipe()
    # How long Kafka waits for the broker that was killed is in its time.
    broker.prepare(pausable=False)
    broker.start()
    bench(options, broker, "restart", ["produce", "--partitions", 10, "--connections", 10,
                                       "--batch-bytes", "64KiB", "--records",
                                       int(options.restart_gib * (1 << 20))])
    broker.end(signal.SIGKILL)
    begun = time.monotonic()
    broker.spawn()
    deadline = begun + 180
    while time.monotonic() < deadline and broker.alive:
        try:
            _, errors = bench(options, broker, "restart", [
                "produce", "--records", 1, "--records-per-batch", 1, "--wait", "120s"])
        except Broken:
            continue
        if not errors:
            took = time.monotonic() - begun
            broker.wipe()
            return {"time": took}
    raise Broken(f"{broker.name} did not come back; see {broker.log()}")


def idle(options, row, variant, brokers):
    broker = brokers[variant]
    broker.wipe()
    broker.start()
    bench(options, broker, "idle", ["produce", "--partitions", 8, "--records", 8,
                                    "--records-per-batch", 1, "--connections", 8])
    time.sleep(options.seconds)
    before, begun = process_time(broker.pid), time.monotonic()
    time.sleep(options.seconds)
    used = (process_time(broker.pid) - before) / (time.monotonic() - begun) * 100
    resident = resident_megabytes(broker.pid)
    broker.wipe()
    return {"CPU": used, "resident memory": resident}


# --------------------------------------------------------------------------- other people's tools


def create_topic(options, broker, topic, create):
    words = [str(options.coretide), "topic", "create", topic, "--bootstrap", broker.address]
    subprocess.run([*words, *map(str, create)], check=True, capture_output=True)


def tool(options, row, command):
    pinned = ["taskset", "-c", str(options.load_cpu), *map(str, command)]
    done = subprocess.run(pinned, capture_output=True, text=True, timeout=phases.PHASE_SECONDS_MAX)
    if done.returncode != 0:
        raise Broken(f"{row.key}: {done.stdout[-500:]} {done.stderr[-500:]}")
    return done.stdout


def producer_perf_test(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    create_topic(options, broker, topic, create)
    records = int(options.seconds * 50_000)
    text = tool(options, row, java(
        "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", broker.address,
        "--topic", topic, "--num-records", records, "--warmup-records", records // 4,
        "--record-size", 1024, "--throughput", -1,
        "--command-property", "acks=all", "batch.size=65536", heap=("-Xmx512M",)))
    delete_topic(options, broker, topic)
    last = [line for line in text.splitlines() if "99th" in line][-1]
    return {"throughput": float(re.search(r"\(([\d.]+) MB/sec\)", last)[1]) * 1.048576,
            "p99": float(re.search(r"(\d+) ms 99th", last)[1])}


def consumer_perf_test(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    records = int(options.seconds * 100_000)
    bench(options, broker, topic, ["produce", "--connections", 8, "--batch-bytes", "64KiB",
                                   "--records", records * 5 // 4, *create])
    text = tool(options, row, java(
        "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", broker.address,
        "--topic", topic, "--num-records", records, "--timeout", 30_000, "--hide-header",
        heap=("-Xmx512M",)))
    delete_topic(options, broker, topic)
    # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, ...
    fields = [field.strip() for field in text.strip().splitlines()[-1].split(",")]
    return {"throughput while fetching": float(fields[8]) * 1.048576}


def end_to_end_latency(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    create_topic(options, broker, topic, create)
    text = tool(options, row, java(
        "org.apache.kafka.tools.EndToEndLatency", broker.address, topic,
        int(options.seconds * 250), "all", 1024, heap=("-Xmx512M",)))
    delete_topic(options, broker, topic)
    found = re.search(r"50th = (\d+), 99th = (\d+)", text)
    if not found:
        raise Broken(f"{row.key}: {text[-500:]}")
    return {"p50": float(found[1]), "p99": float(found[2])}


def librdkafka(options, row, variant, brokers):
    broker, topic, create = find(options, row, variant, brokers)
    create_topic(options, broker, topic, create)
    program = CACHE / "librdkafka" / "release" / "rdkafka-load"
    if not program.exists():
        subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path",
                        ROOT / "perf/librdkafka/Cargo.toml", "--target-dir",
                        CACHE / "librdkafka"], check=True)
    text = tool(options, row, [program, broker.address, topic, 1024, options.seconds])
    delete_topic(options, broker, topic)
    found = re.search(r"([\d.]+) MB/s, p50 [\d.]+ ms, p99 ([\d.]+) ms", text)
    return {"throughput": float(found[1]), "p99": float(found[2])}
