"""What every benchmark needs: timing in turns, processes of their own, a table, and who ran it where."""

import json
import operator
import os
import platform
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import threadpoolctl

HERE = Path(__file__).parent


def in_turns(functions, repeats):
    """Time each function once a round, so that a busy spell of the machine hits all; the first round is dropped.

    functions : {name: callable}. Returns {name: figure}, in seconds; see ``figure``.
    """
    seconds = {name: [] for name in functions}
    for _ in range(repeats + 1):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - begin)
    return {name: figure(values[1:]) for name, values in seconds.items()}


def figure(values):
    """Several measurements of one thing: their median, which is judged, their minimum, and all of them.

    ``Report.write`` keeps the lowest, the highest and the count in place of all.
    """
    return {"median": statistics.median(values), "minimum": min(values), "all": values}


def combine(function, *figures):
    """A function of figures taken in turns: round by round for the median, and from their minima."""
    values = [function(*values) for values in zip(*(f["all"] for f in figures), strict=True)]
    return {"median": statistics.median(values), "minimum": function(*(f["minimum"] for f in figures)), "all": values}


def ratio(above, below):
    return combine(operator.truediv, above, below)


def per_sweep(runs, few, many, repeats):
    """Seconds a sweep, from runs of few and of many sweeps: what is done once drops out of the difference.

    runs : {name: function of the number of sweeps}. Returns {name: figure}.
    """
    timed = in_turns({(name, n): lambda r=run, n=n: r(n) for name, run in runs.items() for n in (few, many)}, repeats)
    return {name: combine(lambda a, b: (b - a) / (many - few), timed[name, few], timed[name, many]) for name in runs}


@contextmanager
def sweep_times():
    """In place of the reports of progress of a fit: {number of the sweep, burn-in included: when it ended}."""
    from skhorseshoe._utils import progress

    reporter, times = progress.reporter, {}
    progress.reporter = lambda *args: lambda t: times.__setitem__(t, time.perf_counter())
    try:
        yield times
    finally:
        progress.reporter = reporter


def child(*arguments, **environment):
    """The JSON that ``_child.py`` prints for these arguments in a fresh process."""
    command = [sys.executable, str(HERE / "_child.py"), *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


class Report:
    """Rows of claim, target and measurement, printed as they come, and all figures behind them."""

    def __init__(self):
        self.started = now()
        self.rows = []
        self.figures = {}

    def add(self, what, measured, unit="", *, at_most=None, at_least=None):
        """A row; measured is a number or a figure, of which the median is judged."""
        value = measured["median"] if isinstance(measured, dict) else measured
        target, met = "", None
        if at_most is not None:
            target, met = f"<= {at_most:.4g}", value <= at_most
        if at_least is not None:
            target, met = f">= {at_least:g}", value >= at_least
        shown = f"{value:.4g} {unit}".strip()
        if isinstance(measured, dict):
            shown += f" ({measured['minimum']:.4g})"
        self.rows.append({"what": what, "target": target, "measured": measured, "unit": unit, "met": met})
        self._print(what, target, shown, {True: "yes", False: "NO"}.get(met, ""))

    def head(self):
        self._print("what", "target", "median (from the minima)", "met")
        self._print("-" * 80, "-" * 8, "-" * 26, "---")

    def _print(self, what, target, measured, met):
        print(f"| {what:<80} | {target:<8} | {measured:<26} | {met:<3} |", flush=True)

    def write(self, name, output, complete):
        """The record, in JSON: to ``output``; where that is None, to results/<name>-<date>.json if it is complete."""
        path = output or (HERE / "results" / f"{name}-{self.started[:10]}.json" if complete else None)
        if path is None:
            return
        measured = {"table": self.rows, "figures": self.figures}
        record = {"date": self.started, **provenance(), **summarised(measured)}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"\nwritten: {path}")


def run_sections(name, sections, parser):
    """The main function of a benchmark: ``sections`` are functions of the report and the options, by name."""
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections), help="sections to run")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run? The figures mean nothing")
    parser.add_argument("--output", type=Path, help=f"default: results/{name}-<date>.json of a complete run")
    options = parser.parse_args()
    report = Report()
    report.head()
    report.figures["settings"] = {"quick": options.quick}
    for section in options.only:
        sections[section](report, options)
    report.write(name, options.output, complete=not options.quick and set(options.only) == set(sections))


def summarised(value):
    """The same with median, extremes and count in place of each list of numbers."""
    if isinstance(value, dict):
        parts = {key: summarised(part) for key, part in value.items()}
        timings = parts.pop("all") if isinstance(value.get("all"), list) else {}
        return parts | timings
    if not isinstance(value, list):
        return value
    if value and all(isinstance(one, int | float) for one in value):
        spread = {"lowest": min(value), "highest": max(value), "count": len(value)}
        return {"median": statistics.median(value), **spread}
    return [summarised(one) for one in value]


def now():
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance():
    """The machine, the versions and the state of the source."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    libraries = ("internal_api", "version", "architecture", "num_threads")
    return {
        "machine": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "cores usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory GiB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
            "os": platform.platform(),
            "load average at the end": os.getloadavg(),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "blas": [{key: lib[key] for key in libraries if key in lib} for lib in threadpoolctl.threadpool_info()],
        "commit": _git("rev-parse", "HEAD"),
        "tree is dirty": bool(_git("status", "--porcelain", "--", ".", ":!benchmarks/results")),
    }


def _cpu_model():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = dict(line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line)
        fields = {key.strip(): value.strip() for key, value in fields.items()}
        named = ("cpu family", "model", "stepping", "cache size")
        return f"{fields.get('model name', platform.machine())} ({', '.join(f'{k} {fields.get(k)}' for k in named)})"
    return platform.processor() or platform.machine()


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip()
