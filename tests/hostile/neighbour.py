"""A well-behaved client in a process of its own, so that nothing but the broker makes it wait: asks ten times a second
on one connection and notes how long answers take. `python3 neighbour.py HOST:PORT`; for each line on standard input it
prints what it saw since the last one as JSON, and it ends with its input.
"""
import json
import pathlib
import select
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from kit.wire import Closed, Connection, Malformed, Silent  # noqa: E402

PAUSE_SECONDS = 0.1
ANSWER_SECONDS_MAX = 30


class Neighbour:
    """The process, from outside."""

    def __init__(self, bootstrap):
        command = [sys.executable, __file__, bootstrap]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers, self.fault = 0, None

    def report(self):
        """The slowest answer in seconds since the last report; brings `answers` and `fault` up to date."""
        self.process.stdin.write("report\n")
        self.process.stdin.flush()
        seen = json.loads(self.process.stdout.readline())
        self.answers, self.fault = self.answers + seen["answers"], seen["fault"]
        return seen["slowest"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(ANSWER_SECONDS_MAX)
        self.process.stdout.close()


def reported(seen):
    """Answers what is asked on standard input until it is time to go on; False at its end."""
    until = time.monotonic() + PAUSE_SECONDS
    while (left := until - time.monotonic()) > 0 or seen["fault"]:
        if select.select([sys.stdin], [], [], None if seen["fault"] else left)[0]:
            if not sys.stdin.readline():
                return False
            print(json.dumps(seen), flush=True)
            seen.update(slowest=0.0, answers=0)
    return True


def main(bootstrap):
    seen = {"slowest": 0.0, "answers": 0, "fault": None}
    try:
        with Connection(bootstrap) as connection:
            while reported(seen):
                began = time.monotonic()
                connection.ask("Metadata", {"topics": []}, timeout=ANSWER_SECONDS_MAX)
                seen["slowest"] = max(seen["slowest"], time.monotonic() - began)
                seen["answers"] += 1
    except (Closed, Silent, Malformed, OSError) as error:
        seen["fault"] = f"{type(error).__name__} {error}"
        reported(seen)


if __name__ == "__main__":
    main(sys.argv[1])
