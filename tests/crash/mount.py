"""A small ext4 of one's own on a loop device, that can lose power, fill up or turn read-only. Needs root."""
import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
NO_LOG_FLUSH = 2


class CannotMount(Exception):
    """This machine or user cannot make loop mounts; the tests that need one cannot run."""


def command(*words):
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode:
        raise CannotMount(f"{' '.join(words)} ended with {done.returncode} (root is needed): {done.stdout.strip()}")
    return done.stdout.strip()


class Mount:
    """An ext4 of `megabytes`, mounted at `path` until `close`."""

    def __init__(self, megabytes, options="errors=remount-ro"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="coretide-mount-"))
        self.image, self.path, self.options = self.folder / "image", self.folder / "fs", options
        self.path.mkdir()
        self.device = None
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        command("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self.image))
        self.attach()

    def attach(self):
        self.device = command("losetup", "--find", "--show", str(self.image))
        command("mount", "-t", "ext4", "-o", self.options, self.device, str(self.path))

    def detach(self):
        for attempt in range(50):
            try:
                command("umount", str(self.path))
                break
            except CannotMount:
                if attempt == 49:
                    raise
                time.sleep(0.1)
        command("losetup", "--detach", self.device)
        self.device = None

    def lose_power(self):
        """Everything that has not reached the device is gone; every later call on this file system fails."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("i", NO_LOG_FLUSH))
        finally:
            os.close(handle)

    def fail(self):
        """The file system finds an error in itself and turns read-only."""
        name = os.path.basename(self.device)
        pathlib.Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("1")

    def remount(self):
        """After a loss of power: what the device holds, through a fresh mount."""
        self.detach()
        self.attach()

    def check(self):
        command("e2fsck", "-fn", str(self.image))

    def free(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def close(self):
        if self.device:
            try:
                self.detach()
            except CannotMount:
                subprocess.run(["umount", "-l", str(self.path)], check=False)
                subprocess.run(["losetup", "--detach", self.device], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
