"""Which commit of Coretide each round of a row is from: runs can be resumed at another one.

`state["origins"]` has a list for each list of rounds of Coretide's in `state["rows"]`; what is
missing in it, at the front or as a whole, was measured before commits were kept.
"""

import subprocess

from .brokers import ROOT, built
from .rows import CORETIDES, ROWS

UNKNOWN = "commit not recorded"


def current(program):
    """The commit that a program was built from; None where nobody can tell."""
    if program != built():
        return None
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, text=True,
                                        capture_output=True).stdout.strip()
    commit = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--", "src", "Cargo.toml", "Cargo.lock")
    return f"{commit} with changes" if commit and changed else commit or None


def keep(state, key, variant, commit):
    """Behind the round that was measured last."""
    if variant not in CORETIDES:
        return
    kept = state.setdefault("origins", {}).setdefault(key, {}).setdefault(variant, [])
    earlier = len(state["rows"][key][variant]) - 1
    kept[:] = [None] * (earlier - len(kept)) + kept + [commit]


def of_row(state, key):
    """Each once, in the order of the rounds."""
    found = {}
    for variant, rounds in state["rows"].get(key, {}).items():
        if variant in CORETIDES:
            kept = state.get("origins", {}).get(key, {}).get(variant, [])
            unknown = [None] * (len(rounds) - len(kept))
            found.update(dict.fromkeys(unknown + kept))
    return list(found)


def brokers(state, keys):
    """All brokers of a table, Coretide with the commit of most rows and those of the others."""
    if not state["versions"]:
        return ""
    rows = {}
    for key in [row.key for row in ROWS if row.key in keys]:
        if found := of_row(state, key):
            rows.setdefault(" and ".join(commit or UNKNOWN for commit in found), []).append(key)
    coretide, *others = state["versions"]
    # Earlier programs have put the commit of the last run behind it.
    coretide = coretide.split(" (")[0]
    if rows:
        most = max(rows, key=lambda commits: len(rows[commits]))
        rest = [f"{'rows' if len(these) > 1 else 'row'} {', '.join(these)}: {commits}"
                for commits, these in rows.items() if commits != most]
        coretide += f" ({'; '.join([most, *rest])})"
    return "; ".join([coretide, *others])
