"""A coretide process of one's own: free ports, a data directory, start, kill, stop. Loopback only."""
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "release" / "coretide"
READY = b"coretide: ready"


class NotReady(Exception):
    """The process ended or stayed silent before it could serve; carries what it printed."""


def free_ports(count):
    """The first of `count` neighbouring ports that are all free just now, below the kernel's own range."""
    for _ in range(500):
        first = random.randrange(20000, 32000 - count)
        held = []
        try:
            for port in range(first, first + count):
                each = socket.socket()
                held.append(each)
                each.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for each in held:
                each.close()
    raise NotReady("no free ports")


class Broker:
    """`coretide serve` on `data`; node ids are 1000 + slot, the ports `port` + slot."""

    def __init__(self, data=None, cores="0,1", binary=BINARY, settings=(), flags=(), port=None, log=None):
        self.data = pathlib.Path(data or tempfile.mkdtemp(prefix="coretide-"))
        self.cores, self.binary, self.flags = cores, pathlib.Path(binary), list(flags)
        self.settings = list(settings)
        self.slots = len(cores.split(","))
        self.port = port or free_ports(self.slots + 1)
        self.admin_port = self.port + self.slots
        self.process, self.output, self.ready_after = None, b"", None
        self.log = log

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def command(self):
        words = [str(self.binary), "serve", "--data-dir", str(self.data), "--cores", self.cores,
                 "--listen", self.bootstrap, "--admin-listen", f"127.0.0.1:{self.admin_port}", *self.flags]
        for setting in self.settings:
            words += ["--set", setting]
        return words

    def launch(self):
        """Starts the process and returns at once; a thread keeps what it prints."""
        if not self.binary.exists():
            raise NotReady(f"{self.binary} is missing: cargo build --release")
        self.output, self.ready_after, self.is_ready = b"", None, threading.Event()
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.listener = threading.Thread(target=self.listen, args=(self.process.stdout,), daemon=True)
        self.listener.start()
        return self

    def listen(self, stream):
        for line in stream:
            if line.startswith(READY):
                self.ready_after = time.monotonic() - self.began
                self.is_ready.set()
            self.output = (self.output + line)[-(1 << 20):]
            if self.log:
                with open(self.log, "ab") as file:
                    file.write(line)
        self.is_ready.set()

    def start(self, within=30):
        """Starts it and returns once it says that it is ready; `ready_after` is how long that took."""
        self.launch()
        self.is_ready.wait(within)
        if self.ready_after is None:
            self.kill()
            raise NotReady(f"not ready within {within} s; it printed:\n{self.text()}")
        return self

    def text(self):
        return self.output.decode(errors="replace")

    def kill(self):
        """kill -9, and waits until the process is gone."""
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        return self.wait(30)

    def stop(self, within=30):
        """SIGTERM; returns the exit code, None when it goes on."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(within)

    def wait(self, within):
        """Waits for the end of the process; None when it goes on."""
        if self.process is None:
            return None
        try:
            self.process.wait(within)
            self.listener.join(5)
        except subprocess.TimeoutExpired:
            pass
        return self.process.poll()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def rss(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def file_count(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *_):
        self.kill()
