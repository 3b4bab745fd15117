"""Where brokers run: on this machine as it is, on a throttled disk, or with little memory.

A place is entered with `with`; it hands out its brokers, not yet started, and takes everything
away when it is left. What cannot be set up says why, and its rows are skipped with that reason.
"""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from .brokers import Broken, Coretide, Foreign, Kafka


class Impossible(Exception):
    """This machine cannot provide the place; the text says what is missing."""


@contextlib.contextmanager
def plain(options):
    brokers = {
        "coretide": Coretide(options, "coretide", options.port),
        "kafka": Kafka(options, "kafka", options.port + 2),
        "two-slots": Coretide(options, "two-slots", options.port + 4,
                              cores=f"{options.broker_cpu},{options.load_cpu}"),
        "crowded": Coretide(options, "crowded", options.port + 8),
    }
    for name, (address, pid) in options.others.items():
        brokers[name] = Foreign(options, name, address, pid)
    yield from left_clean(brokers)


def left_clean(brokers):
    for broker in brokers.values():
        broker.wipe()
    try:
        yield brokers
    finally:
        for broker in brokers.values():
            broker.wipe()


# ------------------------------------------------------------------------------- throttled disk

THROTTLED_BYTES = 24 << 30
WRITES_PER_SECOND = 3000
BYTES_PER_SECOND = 250_000_000


@contextlib.contextmanager
def throttled(options):
    """A loop-mounted ext4 over a file that qemu-storage-daemon exports through its throttle.

    The throttle sits below the file system, so that what the page cache writes back is limited
    like what a broker writes durably. The loop device goes through the cache of the exported
    file, not around it: with direct I/O it was seen to read back wrong blocks over FUSE.
    """
    for program in ("qemu-storage-daemon", "losetup", "mkfs.ext4", "mount"):
        if shutil.which(program) is None:
            raise Impossible(f"there is no {program} (Debian: qemu-system-common, util-linux, "
                             "e2fsprogs)")
    if os.geteuid() != 0:
        raise Impossible("mounting needs root")
    if not Path("/dev/fuse").exists():
        raise Impossible("there is no /dev/fuse")
    folder = options.work / "throttled"
    take_away(folder)
    folder.mkdir(parents=True)
    try:
        mount = set_up(options, folder)
    except (OSError, subprocess.CalledProcessError) as why:
        take_away(folder)
        raise Impossible(f"the throttled disk could not be set up: {why}") from why
    options.beside.append(mount.daemon.pid)
    try:
        yield from left_clean({
            "coretide": Coretide(options, "coretide-slow", options.port, folder=mount.path),
            "kafka": Kafka(options, "kafka-slow", options.port + 2, folder=mount.path),
        })
    finally:
        options.beside.remove(mount.daemon.pid)
        take_away(folder, mount)


class Mount:
    def __init__(self, path, device, daemon):
        self.path, self.device, self.daemon = path, device, daemon


def set_up(options, folder):
    image, exported, path = folder / "image", folder / "exported", folder / "mounted"
    with open(image, "wb") as file:
        file.truncate(THROTTLED_BYTES)
    exported.touch()
    path.mkdir()
    limits = f'"iops-write":{WRITES_PER_SECOND},"bps-write":{BYTES_PER_SECOND}'
    command = [
        "taskset", "-c", str(options.load_cpu), "qemu-storage-daemon",
        "--object", f'{{"qom-type":"throttle-group","id":"slow","limits":{{{limits}}}}}',
        "--blockdev", '{"driver":"file","node-name":"file","filename":"%s","aio":"threads",'
                      '"cache":{"direct":true},"discard":"unmap"}' % image,
        "--blockdev", '{"driver":"throttle","node-name":"limited","throttle-group":"slow",'
                      '"file":"file"}',
        "--export", '{"type":"fuse","id":"out","node-name":"limited","mountpoint":"%s",'
                    '"writable":true}' % exported,
    ]
    log = open(options.work / "throttle.log", "ab")
    daemon = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while exported.stat().st_size != THROTTLED_BYTES:
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise Impossible(f"qemu-storage-daemon did not export; see {log.name}")
        time.sleep(0.05)
    device = run("losetup", "-f", "--show", exported).strip()
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", device)
    run("mount", device, path)
    return Mount(path, device, daemon)


def take_away(folder, mount=None):
    """Also what an interrupted run has left there."""
    if not folder.exists():
        return
    subprocess.run(["umount", folder / "mounted"], capture_output=True)
    if mount:
        subprocess.run(["losetup", "-d", mount.device], capture_output=True)
        mount.daemon.terminate()
        mount.daemon.wait(30)
    subprocess.run(["umount", folder / "exported"], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          capture_output=True).stdout


# -------------------------------------------------------------------------------- little memory

# Heap and threads of Kafka's JVM, and what its page cache then has.
LITTLE_MEMORY_BYTES = 1536 << 20
CORETIDE_MEMORY = "512MiB"


@contextlib.contextmanager
def little_memory(options):
    """Both brokers, each in a cgroup that limits the page cache along with the process."""
    groups = {name: memory_group(name) for name in ("coretide", "kafka")}
    try:
        yield from left_clean({
            "coretide": Coretide(options, "coretide-cold", options.port, cgroup=groups["coretide"],
                                 flags=("--memory-per-core", CORETIDE_MEMORY)),
            "kafka": Kafka(options, "kafka-cold", options.port + 2, cgroup=groups["kafka"]),
        })
    finally:
        for group in groups.values():
            remove_group(group)


def memory_group(name):
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    base, limit = (first, "memory.limit_in_bytes") if first.is_dir() else (second, "memory.max")
    group = base / f"coretide-compare-{name}"
    try:
        if base == second:
            control = second / "cgroup.subtree_control"
            if "memory" not in control.read_text().split():
                control.write_text("+memory")
        group.mkdir(exist_ok=True)
        (group / limit).write_text(str(LITTLE_MEMORY_BYTES))
    except OSError as why:
        raise Impossible(f"no cgroup with a memory limit can be made: {why}") from why
    return group


def remove_group(group):
    deadline = time.monotonic() + 5
    while group.is_dir() and time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:
            # Somebody who has just ended is still being taken out of it.
            time.sleep(0.1)


PLACES = {"plain": plain, "throttled": throttled, "little-memory": little_memory}

__all__ = ["Broken", "Impossible", "PLACES"]
