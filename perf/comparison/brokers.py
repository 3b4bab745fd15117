"""Broker processes, each pinned, on ports and in a data directory of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "perf" / ".cache"
KAFKA_VERSION = "4.4.0"
JARS = CACHE / f"kafka-{KAFKA_VERSION}"
START_SECONDS_MAX = 120


class Broken(Exception):
    """Something that ends a phase, but not the whole comparison."""


def built():
    """Where `build` puts the program."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return (folder / "release/coretide").resolve()


def build(program=None):
    """The program, built if it is not given."""
    if program is None:
        print("building coretide", file=sys.stderr, flush=True)
        subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
        program = built()
    return program.resolve()


class Broker:
    """One broker process. `cgroup` is a folder whose limits it shall live under."""

    # Those whose processes run or are paused.
    started = []

    def __init__(self, options, name, port, folder=None, cgroup=None):
        self.options, self.name, self.port, self.cgroup = options, name, port, cgroup
        self.data = (folder or options.work) / name
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid if self.process else None

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def cpus(self):
        return str(self.options.broker_cpu)

    def command(self):
        raise NotImplementedError

    def prepare(self, pausable=True):
        """Everything that has to be there before a first start."""

    def log(self):
        return self.options.work / f"{self.name}.log"

    def spawn(self):
        command = ["taskset", "-c", self.cpus(), *self.command()]
        if self.cgroup:
            enter = f'echo $$ > "{self.cgroup}/cgroup.procs" && exec "$@"'
            command = ["sh", "-c", enter, "sh", *command]
        with open(self.log(), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, start_new_session=True)
        Broker.started.append(self)
        return self

    def start(self):
        self.pause_others()
        if self.alive:
            self.process.send_signal(signal.SIGCONT)
            return self
        check_port(self.port)
        self.prepare()
        self.spawn()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not answers(self.port):
            if not self.alive or time.monotonic() > deadline:
                raise Broken(f"{self.name} did not start; see {self.log()}")
            time.sleep(0.02)
        return self

    def pause_others(self):
        """What a broker does by itself is in nobody else's time."""
        for other in Broker.started:
            if other is not self and other.alive:
                other.process.send_signal(signal.SIGSTOP)

    def end(self, how=signal.SIGTERM):
        if self in Broker.started:
            Broker.started.remove(self)
        if self.alive:
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def wipe(self):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.data, ignore_errors=True)


class Coretide(Broker):
    # `all` slots of it; None for the one of --broker-cpu.
    def __init__(self, options, name, port, cores=None, flags=(), admin="none", **place):
        super().__init__(options, name, port, **place)
        self.cores, self.flags, self.admin = cores, flags, admin

    def cpus(self):
        return self.cores or super().cpus()

    def command(self):
        return [str(self.options.coretide), "serve", "--data-dir", str(self.data),
                "--listen", self.address, "--admin-listen", self.admin, "--cores", self.cpus(),
                "--set", "log.segment.delete.delay.ms=1000", *self.flags,
                *self.options.serve.split()]

    def version(self):
        return subprocess.run([self.options.coretide, "--version"], text=True,
                              capture_output=True).stdout.strip()


def java(*main, heap=("-Xms1G", "-Xmx1G")):
    """A JVM as Kafka's own start script sets it up."""
    jvm = ["-server", *heap, "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
           "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
           "-Djava.awt.headless=true"]
    log4j = f"-Dlog4j2.configurationFile={ROOT}/perf/kafka/log4j2.properties"
    return ["java", *jvm, log4j, "-cp", f"{JARS}/*", *main]


class Kafka(Broker):
    def command(self):
        return java("kafka.Kafka", str(self.data / "server.properties"))

    def prepare(self, pausable=True):
        fetch_kafka()
        if (self.data / "server.properties").exists():
            return
        self.data.mkdir(parents=True)
        controller = self.port + 1
        (self.data / "server.properties").write_text(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{self.address}
controller.listener.names=CONTROLLER
log.dirs={self.data}/log
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.segment.delete.delay.ms=1000
""")
        if pausable:
            # Paused while another broker is measured, it shall not take that for its own death.
            with open(self.data / "server.properties", "a") as properties:
                properties.write("broker.session.timeout.ms=3600000\n")
        tool = java("kafka.tools.StorageTool", heap=("-Xmx256M",))
        cluster = subprocess.run([*tool, "random-uuid"], capture_output=True, text=True, check=True)
        subprocess.run([*tool, "format", "-t", cluster.stdout.split()[-1],
                        "-c", str(self.data / "server.properties")],
                       check=True, capture_output=True)

    def version(self):
        said = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
        return f"Apache Kafka {KAFKA_VERSION} ({said.splitlines()[0]})"


class Foreign(Broker):
    """A broker that somebody else has started."""

    def __init__(self, options, name, address, pid):
        host, port = address.rsplit(":", 1)
        super().__init__(options, name, int(port))
        self.host, self.foreign_pid = host, pid

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def pid(self):
        return self.foreign_pid

    @property
    def alive(self):
        return True

    def start(self):
        self.pause_others()
        return self

    def end(self, how=None):
        return None

    def wipe(self):
        return None

    def version(self):
        return f"{self.name} at {self.address}"


def fetch_kafka():
    if JARS.is_dir():
        return
    print(f"fetching Apache Kafka {KAFKA_VERSION}", file=sys.stderr, flush=True)
    fetched = CACHE / "kafka-incomplete"
    shutil.rmtree(fetched, ignore_errors=True)
    subprocess.run(["mvn", "-q", "-B", "-f", str(ROOT / "perf/kafka/pom.xml"),
                    "dependency:copy-dependencies", f"-DoutputDirectory={fetched}",
                    "-DincludeScope=runtime"], check=True, stdout=sys.stderr)
    fetched.rename(JARS)


def check_port(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"port {port} is taken; choose others with --port")


def answers(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ticks(pid):
    """CPU seconds of a process, to the tick; 0 for one that is gone."""
    try:
        stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def process_time(pid):
    """CPU seconds of a process, exact to the nanosecond where the kernel tells."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def resident_megabytes(pid):
    status = open(f"/proc/{pid}/status").read()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6
