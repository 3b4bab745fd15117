"""The records of a run, and the lines that a client prints about its cases."""
import sys
import time

PARTITIONS = 6
failed = 0


class Failed(Exception):
    """A case did not hold."""


def check(holds, text):
    if not holds:
        raise Failed(text)


def expected(index, codec):
    """(partition, key, value, headers) of record `index`."""
    key = None if index % 97 == 0 else f"key-{index}".encode()
    value = None if index % 97 == 1 else f"value-{index}-{'x' * (37 * index % 300)}".encode()
    headers = [("index", str(index).encode()), ("codec", codec.encode()), ("empty", b"")]
    return index % PARTITIONS, key, value, headers


def wait_until(what, condition, within=60):
    deadline = time.monotonic() + within
    while True:
        result = condition()
        if result:
            return result
        check(time.monotonic() < deadline, f"not within {within} s: {what}")
        time.sleep(0.1)


def case(name, body, *args):
    global failed
    try:
        body(*args)
        print(f"ok {name}", flush=True)
    except Exception as error:
        failed += 1
        print(f"FAILED {name}: {type(error).__name__}: {error}".replace("\n", " "), flush=True)


def finish():
    sys.exit(1 if failed else 0)
