"""Crowds of clients that take without giving way: memory stays within its budget, everybody else is served as before."""
import pathlib
import shutil
import tempfile
import time

from kit.broker import ROOT, Broker
from kit.wire import Cluster, Connection
from room import batch, case, check, fetch_body, new_name, produce_body, request

MIB = 1 << 20
PER_CORE_MIB, CORES = 64, 2
BEYOND_BUDGET = 60 * MIB
CROWD = 100
FRAME_BYTES = MIB


@case("N10", ours=True)
def readers_that_never_read_and_writers_that_stop(_room):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="crowd-", dir=ROOT / "target" / "hostile"))
    try:
        with Broker(folder, "0,1", flags=("--memory-per-core", f"{PER_CORE_MIB}MiB")) as broker:
            crowded(broker)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def crowded(broker):
    cluster = Cluster(broker.bootstrap)
    wanted, steady = new_name("wanted"), new_name("steady")
    leaders = cluster.create_ready(wanted, CORES)
    cluster.create_ready(steady, CORES)
    for partition in range(CORES):
        for _ in range(40):
            answer = cluster.to(leaders[partition]).ask("Produce", produce_body(wanted, partition, batch([bytes(900_000)])))
            check(answer["topics"][0]["partitions"][0]["error"] == 0, "a large record")
    alone = latencies(cluster, steady, 200)
    crowd = []
    for number in range(CROWD):
        partition = number % CORES
        address = cluster.nodes[leaders[partition]]
        try:
            crowd.append(never_reads(address, wanted, partition))
            crowd.append(stops_mid_frame(address, wanted, partition))
        except OSError as error:
            within_budget(broker, "as the crowd gathers")
            check(False, f"member {number} of the crowd: {error}; the broker printed:\n{broker.text()[-2000:]}")
        if number % 10 == 9:
            within_budget(broker, f"{number + 1} of each")
    among = latencies(cluster, steady, 400)
    within_budget(broker, "everybody is there")
    print(f"        {broker.rss() // MIB} MiB resident; a record written and read back: alone {words(alone)}, "
          f"in the crowd {words(among)}", flush=True)
    allowed = max(2 * alone[-len(alone) // 100], 0.05)
    check(among[-len(among) // 100] <= allowed, f"in the crowd {words(among)}, alone {words(alone)}")
    for connection in crowd:
        connection.close()
    latencies(cluster, steady, 50)
    within_budget(broker, "everybody has gone")
    check(broker.stop() == 0, "it stops in order")


def never_reads(address, topic, partition):
    """Asks for more than its socket and the broker's hold, and takes nothing."""
    connection = Connection(address)
    one = request("Fetch", fetch_body(topic, partition, 0), 1)
    connection.socket.settimeout(0.05)
    try:
        for _ in range(200):
            connection.socket.sendall(one)
    except TimeoutError:
        pass
    return connection


def stops_mid_frame(address, topic, partition):
    """Sends most of a produce of a megabyte, and nothing more."""
    connection = Connection(address)
    frame = request("Produce", produce_body(topic, partition, batch([bytes(FRAME_BYTES)])), 1)
    connection.socket.settimeout(0.05)
    try:
        connection.socket.sendall(frame[:len(frame) * 3 // 4])
    except TimeoutError:
        pass  # the broker takes no more of it for now
    return connection


def within_budget(broker, when):
    check(broker.alive(), f"the broker ended:\n{broker.text()[-3000:]}")
    allowed = CORES * PER_CORE_MIB * MIB + BEYOND_BUDGET
    check(broker.rss() <= allowed, f"{when}: {broker.rss() // MIB} MiB resident, allowed are {allowed // MIB} MiB")


def latencies(cluster, topic, rounds):
    """Seconds to write one record and read it back, sorted."""
    leaders, taken = cluster.leaders(topic), []
    for number in range(rounds):
        partition = number % CORES
        node = cluster.to(leaders[partition])
        began = time.monotonic()
        answer = node.ask("Produce", produce_body(topic, partition, batch([b"x" * 1000])), timeout=30)
        part = answer["topics"][0]["partitions"][0]
        check(part["error"] == 0, f"a produce got error {part['error']}")
        found = node.ask("Fetch", fetch_body(topic, partition, part["offset"]), timeout=30)
        check(found["topics"][0]["partitions"][0]["records"], "the record is read back")
        taken.append(time.monotonic() - began)
    return sorted(taken)


def words(taken):
    middle, late = taken[len(taken) // 2], taken[-len(taken) // 100]
    return f"{middle * 1000:.1f} ms, one in a hundred {late * 1000:.1f} ms"
