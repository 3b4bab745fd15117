"""The tables, RESULTS.md and the drawing."""

import itertools
import math
import os
import platform
import statistics
import subprocess
import sys
import time

from . import origins
from .rows import BARE_SHARE, ROWS, VARIANTS


def called(variant):
    return VARIANTS[variant][2] if variant in VARIANTS else variant


def cpu():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def cpu_and_kernel():
    return f"{cpu()}, Linux {platform.release()}"


def machine(options):
    memory = int(open("/proc/meminfo").readline().split()[1]) / (1 << 20)
    found = subprocess.run(["findmnt", "-no", "FSTYPE,SOURCE", "-T", str(options.work)],
                           capture_output=True, text=True).stdout.split()
    disk = " on ".join(found) if found else "unknown file system"
    return (f"{os.cpu_count()} CPUs ({cpu()}), {memory:.0f} GiB memory, {disk}, "
            f"Linux {platform.release()}")


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread(values):
    if len(values) < 2:
        return number(values[0]) if values else "–"
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


class Line:
    """One metric of the subject, alone or beside one other variant."""

    def __init__(self, state, row, metric, other=None):
        self.row, self.metric, self.other = row, metric, other
        runs = state["rows"].get(row.key, {})
        of = lambda variant: [run.get(metric.title) for run in runs.get(variant, [])]
        self.ours, self.theirs = of(row.subject), of(other) if other else []
        # A ratio is taken within a round: a machine that changes then changes both sides.
        pairs = [(a, b) for a, b in zip(self.ours, self.theirs) if a and b]
        more = metric.better == "more"
        self.ratios = [a / b if more else b / a for a, b in pairs]
        self.ours = [value for value in self.ours if value is not None]
        self.theirs = [value for value in self.theirs if value is not None]
        self.goal = metric.goals.get(other) if other else metric.bound
        self.share = share_of_bare(state, metric, self.ours) if other else None
        self.errors = [run["errors"] for run in runs.get(row.subject, []) if "errors" in run]

    @property
    def ratio(self):
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def is_reached(self):
        """None where nothing is hoped for or nothing was measured."""
        if self.goal is None or not self.ours or (self.other and not self.ratios):
            return None
        if self.errors:
            return False
        if not self.other:
            return statistics.median(self.ours) <= self.goal
        return self.ratio >= self.goal or (self.share or 0) >= BARE_SHARE

    def verdict(self):
        words = {None: "", True: "yes", False: "**no**"}[self.is_reached]
        if self.share and self.goal:
            words += f"; {self.share:.0%} of the bare prototype"
        if self.errors:
            words += f"; errors: {self.errors[0]}"
        return words

    def hoped(self):
        if self.goal is None:
            return ""
        return f"≥ {number(self.goal)}" if self.other else f"≤ {number(self.goal)}"


def lines(state, keys):
    for row in [row for row in ROWS if row.key in keys]:
        measured = state["rows"].get(row.key, {})
        for metric in row.metrics:
            others = [name for name in measured if name != row.subject]
            if metric.bound is not None or not others:
                yield Line(state, row, metric)
            for other in others:
                yield Line(state, row, metric, other)


def share_of_bare(state, metric, ours):
    """How much of what the bare prototype reaches Coretide reaches, if that was measured."""
    name = f"bare prototype, {metric.bare}"
    found = next((it for it in limits(state) if it["what"] == name), None)
    if not (found and ours):
        return None
    share = statistics.median(ours) / (found["value"] * metric.bare_scale)
    return share if metric.better == "more" else 1 / share


def table(state, keys):
    """The rows as markdown."""
    out = ["| load | | Coretide | the other | ratio | hoped for | reached |",
           "|---|---|---|---|---|---|---|"]
    last = None
    for line in lines(state, keys):
        title = line.row.title if line.row.key != last else ""
        last = line.row.key
        against = f"; against {called(line.other)}" if line.other else ""
        out.append(f"| {title} | {line.metric.title}, {line.metric.unit}{against} | "
                   f"{spread(line.ours)} | {spread(line.theirs)} | {spread(line.ratios)} | "
                   f"{line.hoped()} | {line.verdict()} |")
    for key, why in state.get("skipped", {}).items():
        if key in keys:
            title = next(row.title for row in ROWS if row.key == key)
            out.append(f"| {title} | not measured: {why} | | | | | |")
    return "\n".join(out)


def limits(state):
    """What `perf/limits` found, in the median over the runs."""
    values, units = {}, {}
    for found in itertools.chain(*state.get("limits_of_runs", [])):
        values.setdefault(found["what"], []).append(found["value"])
        units[found["what"]] = found["unit"]
    return [{"what": what, "value": statistics.median(each), "unit": units[what]}
            for what, each in values.items()]


def limits_table(state):
    if not limits(state):
        return ""
    out = ["## What the machine can do at most", "",
           "By `perf/limits`, in the same runs. The bare prototype is sockets and durable writes",
           "with nothing of a broker between them; where it says so, writes to the page cache.", "", "| | | |", "|---|---|---|"]
    for found in limits(state):
        out.append(f"| {found['what']} | {number(found['value'])} | {found['unit']} |")
    return "\n".join(out) + "\n"


def write(options, state, keys, curves):
    noise = max(state["noise"], default=0.0)
    loud = " (the machine was not quiet: take the numbers as rough)"
    verdicts = [line.is_reached for line in lines(state, keys)]
    commands = "\n".join(state["commands"])
    failures = "\n".join(f"* {text}" for text in state["failures"])
    drawing = options.out.with_suffix(".svg")
    curves_line = f"\n![Latency end to end]({curves.name})\n" if curves else ""
    text = f"""# Coretide beside Apache Kafka

Written by `perf/compare`; its head says how it measures. One broker has one CPU, the load comes
from another. Coretide acknowledges what is on stable storage unless a row says otherwise. Numbers
are medians over the rounds with their range; a ratio above 1 means that Coretide is better,
whatever the unit. A row is reached at its ratio, or at {BARE_SHARE:.0%} of the bare prototype.

* Machine: {machine(options)}.
* Brokers: {origins.brokers(state, keys)}.
* Phases of {options.seconds:g} s behind a warm-up, {state['runs']} run(s) together, the last one
  in {state['minutes']:.1f} minutes. CPUs busy with something else during a phase: at most
  {noise:.2f}{loud if noise > options.noise_max else ''}.
* Measured {time.strftime('%Y-%m-%d')} with `{' '.join(['perf/compare', *sys.argv[1:]])}`.
* {verdicts.count(True)} of {verdicts.count(True) + verdicts.count(False)} reached.

![Ratios]({drawing.name})
{curves_line}
{table(state, keys)}

{limits_table(state)}
## The exact loads

`--bootstrap` and `--load-cpus` are added by the script.

```
{commands}
```
"""
    if failures:
        text += f"\n## Phases that failed\n\n{failures}\n"
    options.out.write_text(text)
    drawing.write_text(draw([line for line in lines(state, keys) if line.other and line.ratios]))


# ------------------------------------------------------------------------------------ the drawing

LABELS, WIDTH, HEIGHT, RIGHT, TOP = 560, 1120, 22, 60, 56
COLORS = {"kafka": "#0072b2", "kafka-flush": "#56b4e9"}


def draw(shown):
    """A bar for each ratio on a logarithmic scale, and a tick where it should end."""
    highest = max([10, *(line.ratio for line in shown), *(line.goal or 0 for line in shown)])
    lowest = min([1 / 3, *(line.ratio for line in shown)])
    low, high = math.log10(lowest) - 0.05, math.log10(highest) + 0.08
    place = lambda ratio: LABELS + (math.log10(ratio) - low) / (high - low) * (
        WIDTH - LABELS - RIGHT)
    bottom = TOP + HEIGHT * len(shown)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 16}" '
           'font-family="system-ui, sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{bottom + 16}" fill="#ffffff"/>',
           '<text x="12" y="22" font-size="16" font-weight="600" fill="#1f2328">'
           'How many times as good as the other (tick: hoped for)</text>']
    for ratio in (0.1, 0.3, 1, 3, 10, 30, 100):
        if lowest <= ratio <= highest:
            x, color = place(ratio), "#57606a" if ratio == 1 else "#d0d7de"
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}" '
                       f'stroke="{color}"/><text x="{x:.1f}" y="{TOP - 10}" '
                       f'text-anchor="middle" fill="#57606a">{ratio:g} ×</text>')
    for at, line in enumerate(shown):
        y = TOP + HEIGHT * at
        words = f"{line.row.key}: {line.metric.title} against {called(line.other)}"
        begin, end = sorted((place(1), place(line.ratio)))
        color = COLORS.get(line.other, "#009e73")
        out.append(f'<text x="{LABELS - 12}" y="{y + 15}" text-anchor="end" fill="#1f2328">'
                   f'{words.replace("&", "&amp;")}</text>'
                   f'<rect x="{begin:.1f}" y="{y + 4}" width="{max(end - begin, 1):.1f}" '
                   f'height="{HEIGHT - 8}" fill="{color}"/>'
                   f'<text x="{end + 6:.1f}" y="{y + 15}" fill="#1f2328">'
                   f'{number(line.ratio)}</text>')
        if line.goal:
            x = place(line.goal)
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y + 1}" y2="{y + HEIGHT - 1}" '
                       'stroke="#d55e00" stroke-width="3"/>')
    return "\n".join([*out, "</svg>", ""])
