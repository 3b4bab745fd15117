"""What every member written in Python does: listens to its commands and says what happens to it."""
import queue
import sys
import threading
import time

BOOTSTRAP, GROUP, TOPIC, NAME, STRATEGY = sys.argv[1:6]
SESSION_MS, POLL_MS = int(sys.argv[6]), int(sys.argv[7])
HEARTBEAT_MS = SESSION_MS // 6
commands = queue.Queue()


def say(event, *rest):
    sys.stdout.write(" ".join([event, f"{time.time() * 1000:.3f}", *map(str, rest)]) + "\n")
    sys.stdout.flush()


def numbers(partitions):
    return ",".join(str(each.partition) for each in partitions)


def got(record_partition, offset, value):
    say("got", record_partition, offset, value.decode())


def is_told_to_stop():
    """Sleeps through a stall, if it is told to."""
    try:
        command = commands.get_nowait()
    except queue.Empty:
        return False
    if command == "stall":
        say("stalled")
        command = commands.get()
        say("woken")
    return command == "stop"


def listen():
    for line in sys.stdin:
        commands.put(line.strip())
    commands.put("stop")


threading.Thread(target=listen, daemon=True).start()
