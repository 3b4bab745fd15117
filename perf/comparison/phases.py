"""One measured phase, and how busy the machine was beside it."""

import contextlib
import json
import os
import subprocess
import sys
import time

from .brokers import Broken, ticks

PHASE_SECONDS_MAX = 240


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Bench:
    """A running `coretide bench`; `result` waits for its JSON."""

    def __init__(self, options, broker, topic, arguments, nice=0):
        kind, *rest = [str(argument) for argument in arguments]
        self.broker, self.options = broker, options
        self.command = ["nice", "-n", str(nice), "taskset", "-c", str(options.load_cpu),
                        str(options.coretide), "bench", kind, "--bootstrap", broker.address,
                        "--topic", topic, "--load-cpus", str(options.load_cpu), "--json", *rest]
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE)

    def result(self):
        try:
            out, errors = self.process.communicate(timeout=PHASE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, errors = self.process.communicate()
        try:
            return json.loads(out)
        except ValueError:
            raise Broken(f"{self.broker.name}: {' '.join(self.command)}: {errors}") from None


def bench(options, broker, topic, arguments):
    """One run of `coretide bench` and its errors: what was not as it should be."""
    run = Bench(options, broker, topic, arguments).result()
    return run, run.get("errors") or {}


def remember(options, topic, arguments):
    """The command, for those who want to repeat it."""
    kind, *rest = [str(argument) for argument in arguments]
    hidden = {"--pid", "--hgrm"}
    words = [word for at, word in enumerate(rest)
             if word not in hidden and (at == 0 or rest[at - 1] not in hidden)]
    options.commands[f"coretide bench {kind} --topic {topic} {' '.join(words)}"] = None


def settings(configs):
    return [word for config in configs for word in ("--config", config)]


def delete_topic(options, broker, topic):
    subprocess.run([str(options.coretide), "topic", "delete", topic, "--bootstrap",
                    broker.address], capture_output=True)


def settle():
    """Lets deleted files go and dirty pages be written, so that the next phase starts even."""
    time.sleep(1.2)
    os.sync()
    time.sleep(0.3)


def warm_up(options, broker, key):
    """Longer for the first time that a JVM sees a load: it compiles it."""
    if (broker.data, key) in options.warmed:
        return options.warm_up
    options.warmed.add((broker.data, key))
    return options.warm_up + (options.first_warm_up if broker.name.startswith("kafka") else 0)


def busy_time():
    """CPU seconds that all CPUs together were not idle."""
    fields = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own_time(options, brokers):
    """CPU seconds of everything that belongs to the comparison."""
    times = os.times()
    ours = times.user + times.system + times.children_user + times.children_system
    pids = [broker.pid for broker in brokers.values() if broker.pid] + options.beside
    return ours + sum(ticks(pid) for pid in pids)


@contextlib.contextmanager
def noise_noted(options, brokers):
    """Adds to `options.noise` how many CPUs somebody else has used meanwhile."""
    before, ours, begun = busy_time(), own_time(options, brokers), time.monotonic()
    yield
    elapsed = max(time.monotonic() - begun, 1e-3)
    foreign = busy_time() - before - (own_time(options, brokers) - ours)
    options.noise.append(max(0.0, foreign) / elapsed)


def quiet(options):
    """Refuses to measure on a machine that does something else."""
    before, begun = busy_time(), time.monotonic()
    time.sleep(3)
    share = (busy_time() - before) / (time.monotonic() - begun)
    if share > options.noise_max:
        message = f"the machine is busy: {share:.2f} CPUs are in use without us"
        if not options.force:
            sys.exit(f"{message}; wait, or use --force and get rough numbers")
        say(f"WARNING: {message}; the numbers are rough")
