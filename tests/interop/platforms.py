"""What stands on consumer groups: Kafka Connect in distributed mode, and a word count in Kafka Streams. Both go on when a
worker or the broker is killed; nothing that was to come out is missing."""
import collections
import json
import signal
import subprocess
import time
import urllib.error
import urllib.request

from kit.broker import free_ports
from kit.report import check, equal
from kit.wire import Closed, Cluster, Connection, Malformed, Silent, batch, batches, fetch_body, new_name, produce_body

PATIENCE_SECONDS = 90



def topics_are_compacted(bootstrap):
    """Whether a topic with cleanup.policy=compact would be made."""
    with Connection(bootstrap) as connection:
        answer = connection.ask("CreateTopics", {"timeout": 30000, "dry": True, "topics": [
            {"name": new_name("compacted"), "partitions": 1, "factor": 1,
             "configs": [{"name": "cleanup.policy", "value": "compact"}]}]})
    return answer["topics"][0]["error"] == 0


def until(what, condition, within=PATIENCE_SECONDS, story=lambda: ""):
    deadline = time.monotonic() + within
    while not condition():
        check(time.monotonic() < deadline, f"not within {within} s: {what}\n{story()}")
        time.sleep(0.1)


def walk(report, what, steps):
    """Each step is a case that stands on the one before; one that fails is the last."""
    for body, *args in steps:
        if not report.case(f"{what} {body.__name__.replace('_', ' ')}", lambda: body(*args) or True):
            return


class Worker:
    """A process whose output is kept in a file."""

    def __init__(self, folder, name, words):
        self.path = folder / f"{name}.log"
        self.log = open(self.path, "wb")
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=self.log,
                                        stderr=subprocess.STDOUT)

    def text(self):
        return self.path.read_text(errors="replace")

    def story(self):
        return f"{self.path.name}, ended with {self.process.poll()}:\n" + "\n".join(self.text().splitlines()[-12:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.log.close()


# --------------------------------------------------------------------------------------------- connect
class Connect:
    """Two workers of one group: a source that counts into a topic, a sink that appends the topic to a file."""

    TASKS = 2

    def __init__(self, bootstrap, folder, java):
        self.bootstrap, self.folder, self.java = bootstrap, folder, java
        self.name, self.file, self.workers = new_name("connect"), folder / "sunk.txt", []
        self.topic = f"{self.name}-counted"

    def worker(self):
        """Starts one more worker; returns its place."""
        place, port = len(self.workers), free_ports(1)
        path = self.folder / f"worker-{place}.properties"
        path.write_text("\n".join(f"{key}={value}" for key, value in {
            "bootstrap.servers": self.bootstrap, "group.id": self.name, "listeners": f"http://127.0.0.1:{port}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": f"{self.name}-configs", "config.storage.replication.factor": 1,
            "offset.storage.topic": f"{self.name}-offsets", "offset.storage.replication.factor": 1,
            "offset.storage.partitions": 3, "status.storage.topic": f"{self.name}-status",
            "status.storage.replication.factor": 1, "status.storage.partitions": 2, "offset.flush.interval.ms": 500,
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000, "scheduled.rebalance.max.delay.ms": 1000,
            "plugin.discovery": "only_scan", "consumer.auto.offset.reset": "earliest",
        }.items()) + "\n")
        worker = Worker(self.folder, f"worker-{place}", self.java("org.apache.kafka.connect.cli.ConnectDistributed", path))
        worker.url = f"http://127.0.0.1:{port}"
        self.workers.append(worker)
        until(f"worker {place} answers", lambda: self.ask(worker, "/") is not None, story=self.story)
        return worker

    def story(self):
        return "\n".join(worker.story() for worker in self.workers)

    def ask(self, worker, path, body=None):
        """The JSON of an answer; None while there is none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(worker.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError, ValueError):
            return None

    def connect(self, worker, name, kind, **config):
        body = {"name": name, "config": {"connector.class": f"connectors.{kind}", "tasks.max": str(self.TASKS), **config}}
        until(f"{name} is taken", lambda: self.ask(worker, "/connectors", body) is not None, story=self.story)

    def runs(self, worker):
        """On which workers the tasks run, when all of them do."""
        places = []
        for name in ("source", "sink"):
            status = self.ask(worker, f"/connectors/{name}/status") or {"tasks": [], "connector": {"state": "?"}}
            states = [status["connector"]["state"]] + [task["state"] for task in status["tasks"]]
            if states != ["RUNNING"] * (1 + self.TASKS):
                return set()
            places += [task["worker_id"] for task in status["tasks"]]
        return set(places)

    def sunk(self):
        """Counter -> numbers that came out."""
        found = collections.defaultdict(set)
        for line in self.file.read_text().splitlines() if self.file.exists() else ():
            counter, _, number = line.partition("/")
            found[counter].add(int(number))
        return found

    def goes_on(self, what):
        """Waits until every counter has come 50 further than anything before."""
        marks = {counter: max(numbers) for counter, numbers in self.sunk().items()}
        until(what, lambda: len(self.sunk()) == self.TASKS and all(
            max(numbers) > marks.get(counter, 0) + 50 for counter, numbers in self.sunk().items()), story=self.story)

    def starts(self):
        first = self.worker()
        with Connection(self.bootstrap) as connection:
            connection.ask("CreateTopics", {"topics": [{"name": self.topic, "partitions": 3, "factor": 1}], "timeout": 30000})
        self.connect(first, "source", "CountingSource", topic=self.topic)
        self.connect(first, "sink", "FileSink", topics=self.topic, file=str(self.file))
        until("all tasks run", lambda: len(self.runs(first)) == 1, story=self.story)
        self.goes_on("numbers come out")

    def shares(self):
        second = self.worker()
        until("tasks run on both workers", lambda: len(self.runs(second)) == 2, story=self.story)
        self.goes_on("numbers come out of both workers")

    def loses_a_worker(self):
        self.workers[0].kill()
        until("all tasks run on the other worker", lambda: len(self.runs(self.workers[1])) == 1, story=self.story)
        self.goes_on("numbers come out of the other worker")

    def loses_the_broker(self, restart):
        restart()
        self.goes_on("numbers come out after the broker was killed")
        until("all tasks run", lambda: self.runs(self.workers[1]), story=self.story)

    def misses_nothing(self):
        for counter, numbers in self.sunk().items():
            gaps = set(range(max(numbers) - 100)) - numbers  # what came last may still be on its way
            check(not gaps, f"{counter}: {len(gaps)} numbers never came out, such as {sorted(gaps)[:5]}")

    def live(self, report, restart):
        steps = [(self.starts,), (self.shares,), (self.loses_a_worker,)]
        steps += [(self.loses_the_broker, restart)] if restart else []
        try:
            walk(report, "connect:", (*steps, (self.misses_nothing,)))
        finally:
            for worker in self.workers:
                worker.kill()


# --------------------------------------------------------------------------------------------- streams
class WordCount:
    """Lines go into one topic, the count of each word comes out of another."""

    PARTITIONS = 2

    def __init__(self, bootstrap, folder, java):
        self.bootstrap, self.folder, self.java = bootstrap, folder, java
        self.name, self.app, self.number = new_name("words"), None, 0
        self.input, self.output, self.written = f"{self.name}-in", f"{self.name}-out", collections.Counter()

    def write(self, lines):
        """Writes some lines; counts what should come out."""
        cluster = Cluster(self.bootstrap)
        leaders = cluster.leaders(self.input)
        for _ in range(lines):
            words = ["every", f"fifth-{self.number % 5}", f"thirteenth-{self.number % 13}"]
            data = batch([" ".join(words).encode()], timestamp=int(time.time() * 1000))
            partition = self.number % self.PARTITIONS
            answer = cluster.to(leaders[partition]).ask("Produce", produce_body(self.input, partition, data))
            equal("error of a produce", answer["topics"][0]["partitions"][0]["error"], 0)
            self.written.update(words)
            self.number += 1
        cluster.close()

    def counted(self):
        """The last count of each word."""
        found = {}
        try:
            cluster = Cluster(self.bootstrap, timeout=10)
            for partition, leader in cluster.leaders(self.output).items():
                offset, end = 0, cluster.end(self.output, partition, {partition: leader})
                while offset < end:
                    answer = cluster.to(leader).ask("Fetch", fetch_body(self.output, partition, offset))
                    for each in batches(answer["topics"][0]["partitions"][0]["records"]):
                        found.update({key.decode(): int(value) for _, key, value, _ in each.records()})
                        offset = each.base + each.last_delta + 1
            cluster.close()
        except (Closed, Silent, Malformed, OSError, KeyError) as error:
            self.last_error = error
        return found

    def story(self):
        return f"{self.app.story() if self.app else 'it never ran'}\ncounted {self.counted()}, written {dict(self.written)}"

    def is_complete(self):
        found = self.counted()
        return found.keys() == self.written.keys() and all(found[word] >= count for word, count in self.written.items())

    def counts(self):
        cluster = Cluster(self.bootstrap)
        for topic in (self.input, self.output):
            cluster.create_ready(topic, self.PARTITIONS)
        cluster.close()
        self.write(300)
        self.app = Worker(self.folder, "word-count", self.java("WordCount", self.bootstrap, self.name, self.input, self.output,
                                                             self.folder / "streams"))
        until("every word is counted", self.is_complete, story=self.story)
        equal("counts", self.counted(), dict(self.written))
        self.write(300)
        until("more words are counted", self.is_complete, story=self.story)
        equal("counts", self.counted(), dict(self.written))

    def survives_the_broker(self, restart):
        self.write(200)
        restart()
        self.write(300)
        until("every word is counted after the broker was killed", self.is_complete, story=self.story)
        self.write(100)
        until("more words are counted", self.is_complete, story=self.story)
        over = sum(self.counted().values()) - sum(self.written.values())
        print(f"        {sum(self.written.values())} words, {over} counted again", flush=True)

    def starts_anew(self):
        """A second life restores what was counted from its changelog."""
        self.app.kill()
        before = self.counted()
        self.app = Worker(self.folder, "word-count-again", self.java("WordCount", self.bootstrap, self.name, self.input,
                                                                   self.output, self.folder / "streams-again"))
        self.write(100)
        until("it goes on where it was", lambda: self.is_complete() and "running" in self.app.text(), story=self.story)
        check(all(self.counted()[word] > count for word, count in before.items()), f"it began anew: {self.story()}")

    def ends(self):
        self.app.process.stdin.close()
        equal("exit code", self.app.process.wait(60), 0)

    def live(self, report, restart):
        steps = [(self.counts,), *([(self.survives_the_broker, restart)] if restart else []), (self.starts_anew,), (self.ends,)]
        try:
            walk(report, "streams: word count", steps)
        finally:
            if self.app:
                self.app.kill()
