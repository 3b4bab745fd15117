"""One line per case, and `N passed, N failed` as the last line of a suite."""
import sys
import threading
import time
import traceback


class Failed(Exception):
    """A case did not hold; the text says what was wanted and what came."""


def check(holds, text):
    if not holds:
        raise Failed(text)


def equal(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: wanted {wanted!r}, got {got!r}")


class Report:
    def __init__(self):
        self.passed, self.failed, self.lock = 0, [], threading.Lock()

    def line(self, name, why=None, seconds=None):
        """Counts one case. `why` is None for a pass and the reason for a failure."""
        took = "" if seconds is None else f"  ({seconds:.1f} s)"
        with self.lock:
            if why is None:
                self.passed += 1
                print(f"ok      {name}{took}", flush=True)
            else:
                self.failed.append(name)
                text = str(why).strip().replace("\n", "\n        ")
                print(f"FAILED  {name}{took}\n        {text}", flush=True)

    def case(self, name, body, *args):
        """Runs `body(*args)` as a case and returns its result, None when it failed."""
        began = time.monotonic()
        try:
            result = body(*args)
        except Failed as error:
            self.line(name, error, time.monotonic() - began)
        except Exception as error:  # what a suite did not foresee is a failure with its place
            where = "".join(traceback.format_tb(error.__traceback__)[-3:])
            self.line(name, f"{type(error).__name__}: {error}\n{where}", time.monotonic() - began)
        else:
            self.line(name, None, time.monotonic() - began)
            return result
        return None

    def finish(self):
        for name in self.failed:
            print(f"failed: {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)
