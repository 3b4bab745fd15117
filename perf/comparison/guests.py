"""Clients beside a load, in processes of their own: some come and go, one takes its answers slowly.

    python3 guests.py churn HOST:PORT TOPIC VISITS_PER_SECOND
    python3 guests.py slow HOST:PORT TOPIC BYTES_PER_SECOND

Each prints what it has counted as a line of JSON every second, until it is ended.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

from kit.wire import Closed, Connection, Malformed, Silent, batch  # noqa: E402
from kit.wire import fetch_body, produce_body, request  # noqa: E402

STAY_SECONDS = 2.0
ANSWER_BYTES = 1 << 20
REQUESTS_AHEAD = 4
OFFSET_OUT_OF_RANGE = 1


class Guest:
    """One of the processes, from outside: the newest of what it counts."""

    def __init__(self, options, kind, *words):
        command = ["nice", "-n", "10", "taskset", "-c", str(options.load_cpu), sys.executable,
                   __file__, kind, *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.seen = {"done": 0, "errors": {}}
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.seen = json.loads(line)

    @property
    def alive(self):
        return self.process.poll() is None

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.reader.join(30)


class Counts:
    def __init__(self):
        self.done, self.errors, self.told = 0, {}, time.monotonic()

    def failed(self, why):
        name = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why
        self.errors[name] = self.errors.get(name, 0) + 1

    def tell(self):
        if time.monotonic() >= self.told + 1:
            self.told = time.monotonic()
            print(json.dumps({"done": self.done, "errors": self.errors}), flush=True)


# ------------------------------------------------------------------------------------- come and go


def churn(address, topic, per_second):
    """Visits in turns of every kind, so many a second; latecomers are made up for."""
    counts, staying, begun, number = Counts(), [], time.monotonic(), 0
    while True:
        due = begun + number / float(per_second)
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            visit(address, topic, VISITS[number % len(VISITS)], staying)
            counts.done += 1
        except (OSError, Closed, Silent, Malformed) as why:
            counts.failed(why)
        while staying and staying[0][0] < time.monotonic():
            staying.pop(0)[1].close()
        number += 1
        counts.tell()


def visit(address, topic, kind, staying):
    connection = Connection(address)
    try:
        answer = connection.ask("ApiVersions", {"software": "guest", "software_version": "1"})
        described = connection.ask("Metadata", {"topics": [{"name": topic}]})
        if answer["error"] or described["topics"][0]["error"]:
            raise Malformed("refused to tell what there is")
        kind(connection, topic, staying)
    except BaseException:
        connection.close()
        raise


def writes_and_leaves(connection, topic, _):
    answer = connection.ask("Produce", produce_body(topic, 0, batch([b"a visitor was here"])))
    error = answer["topics"][0]["partitions"][0]["error"]
    if error:
        raise Malformed(f"a record was refused with {error}")
    connection.close()


def leaves_while_it_waits(connection, topic, _):
    """A fetch waits for records that do not come; its client goes."""
    connection.send("Fetch", fetch_body(topic, 1, 0, max_wait=30_000))
    connection.close()


def hangs_up(connection, topic, _):
    """By a reset, with a request under way."""
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.send("Produce", produce_body(topic, 0, batch([b"perhaps"])))
    connection.close()


def breaks_off(connection, topic, _):
    """In the middle of a request."""
    whole = request("Produce", produce_body(topic, 0, batch([bytes(4000)])), 9)
    connection.write(whole[:len(whole) // 2])
    connection.close()


def stays_a_while(connection, _topic, staying):
    staying.append((time.monotonic() + STAY_SECONDS, connection))


VISITS = [writes_and_leaves, leaves_while_it_waits, hangs_up, breaks_off, stays_a_while]


# --------------------------------------------------------------------------- takes answers slowly


def slow(address, topic, bytes_per_second):
    """Asks for large answers ahead and takes so many bytes a second off the socket."""
    counts = Counts()
    while True:
        try:
            read_slowly(address, topic, float(bytes_per_second), counts)
        except (OSError, Closed, Silent, Malformed) as why:
            counts.failed(why)
            counts.tell()
            time.sleep(1)


def read_slowly(address, topic, bytes_per_second, counts):
    with Connection(address) as connection, Connection(address) as asking:
        offset = first_offset(asking, topic)
        paced = Paced(connection.socket, bytes_per_second, counts)
        connection.socket = paced
        for _ in range(REQUESTS_AHEAD):
            connection.send("Fetch", fetch_body(topic, 0, offset, max_bytes=ANSWER_BYTES))
        while True:
            part = connection.receive("Fetch", timeout=600)["topics"][0]["partitions"][0]
            if part["error"] == OFFSET_OUT_OF_RANGE:
                # Retention was faster: go on with what is there.
                offset = first_offset(asking, topic)
            elif part["error"]:
                raise Malformed(f"a fetch was refused with {part['error']}")
            else:
                counts.done += 1
            connection.send("Fetch", fetch_body(topic, 0, offset, max_bytes=ANSWER_BYTES))


def first_offset(connection, topic):
    answer = connection.ask("ListOffsets", {"replica": -1, "topics": [
        {"name": topic, "partitions": [{"partition": 0, "epoch": -1, "timestamp": -2}]}]})
    return answer["topics"][0]["partitions"][0]["offset"]


class Paced:
    """A socket that gives its bytes at a pace."""

    def __init__(self, inner, bytes_per_second, counts):
        self.inner, self.pace, self.counts = inner, bytes_per_second, counts
        self.free_at = time.monotonic()

    def recv(self, size):
        while time.monotonic() < self.free_at:
            self.counts.tell()
            time.sleep(min(0.1, max(0.0, self.free_at - time.monotonic())))
        taken = self.inner.recv(min(size, STEP_BYTES))
        self.free_at = max(self.free_at, time.monotonic() - 0.1) + len(taken) / self.pace
        return taken

    def __getattr__(self, name):
        return getattr(self.inner, name)


STEP_BYTES = 64 << 10

if __name__ == "__main__":
    {"churn": churn, "slow": slow}[sys.argv[1]](*sys.argv[2:])
