"""What every benchmark needs: one command line, timing, processes of their own, a table, and who ran it where.

As a command it answers one question in a fresh process: ``python _measure.py FILE FUNCTION JSON``; see ``in_child``.
"""

import argparse
import importlib
import json
import operator
import os
import platform
import statistics
import subprocess
import sys
import time
import venv
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import threadpoolctl

HERE = Path(__file__).parent


def run(file, doc, sections, parser=None, *, apart=(), arguments=None):
    """The main function of every benchmark, whose file and docstring are given.

    sections : {name: function of the report and the options}, of which those ``apart`` are run only if ``--only`` names
    them, with a result of their own. parser : what the benchmark has of options of its own.
    """
    name, usual = Path(file).stem.replace("_", "-"), [one for one in sections if one not in apart]
    parser = parser or argparse.ArgumentParser()
    parser.description, parser.formatter_class = doc, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=sections, default=usual, metavar="PART", help=", ".join(sections))
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run? The figures mean nothing")
    parser.add_argument("--output", type=Path, help=f"default: results/{name}-DATE.json of a complete run")
    options = parser.parse_args(arguments)
    report = Report()
    report.figures["settings"] = {"quick": options.quick}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that chains have not converged is what is measured, or of no interest
        for section in options.only:
            sections[section](report, options)
    asked = options.only
    if len(asked) == 1 and asked[0] in apart:
        name, usual = f"{name}-{asked[0]}", asked
    complete = not (options.quick or report.is_partial) and set(asked) >= set(usual)
    report.write(name + report.suffix, options.output, complete)


def fit(X, y, parameters, kind=None, **of_rows):
    """A fit that says nothing: what it would warn of is in the table, or of no interest. kind : another classifier."""
    from skhorseshoe import HorseshoeProbitClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (kind or HorseshoeProbitClassifier)(**parameters).fit(X, y, **of_rows)


def timed(function, clock=time.perf_counter):
    """Seconds of a call, on the wall or with ``time.process_time`` of the processor, and what it returns."""
    begin = clock()
    result = function()
    return clock() - begin, result


def in_turns(functions, repeats, clock=time.perf_counter):
    """Time each function once a round, so that a busy spell of the machine hits all; the first round is dropped.

    functions : {name: callable}. Returns {name: figure}, in seconds; see ``figure``.
    """
    seconds = {name: [] for name in functions}
    for _ in range(repeats + 1):
        for name, function in functions.items():
            seconds[name].append(timed(function, clock)[0])
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
    timings = in_turns({(name, n): lambda r=run, n=n: r(n) for name, run in runs.items() for n in (few, many)}, repeats)
    return {
        name: combine(lambda a, b: (b - a) / (many - few), timings[name, few], timings[name, many]) for name in runs
    }


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


# Other processes ------------------------------------------------------------------------------------------------------

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")}
ONE_THREAD |= {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


def child_command(function, given):
    """What a Python is to be called with for a function of a benchmark; given : its arguments, by name."""
    file = Path(sys.modules[function.__module__].__file__).stem
    return [str(HERE / "_measure.py"), file, function.__name__, json.dumps(given, default=str)]


def in_child(function, *, python=sys.executable, folder=HERE.parent, env=None, **given):
    """What a function of a benchmark returns, numbers in lists and dictionaries, in a fresh process.

    folder : the checkout whose library it has, this one or that of another commit. env : variables beside.
    """
    env = {**os.environ, "PYTHONPATH": str(Path(folder).absolute()), **(env or {})}
    command = [str(python), *child_command(function, given)]
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)


def environment(folder, packages):
    """The interpreter of a virtual environment, which is made if it is not there, and what could not be installed.

    packages : {name: what pip is told}, one after another.
    """
    folder, failed = folder.absolute(), {}
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / "complete").exists():
        print(f"installing {', '.join(packages)} into {folder}", flush=True)
        venv.create(folder, with_pip=True)
        for name, told in packages.items():
            command = [python, "-m", "pip", "install", "--quiet", *told]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                failed[name] = "not installed: " + (done.stderr.strip().splitlines() or ["?"])[-1][:200]
        if not failed:
            (folder / "complete").touch()
    return python, failed


def resident(name):
    """VmRSS, what is resident now, RssFile, what of it are files such as libraries, or VmHWM, the most there was."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[name].split()[0]) * 1024


def forget_peak():
    """Have Linux count the most that is resident from now on; returns what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


class Report:
    """Rows of claim, target and measurement, printed as they come, and all figures behind them."""

    def __init__(self):
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.rows = []
        self.figures = {}
        self.is_partial = False  # where the options of a benchmark leave something out
        self.suffix = ""  # of the name of the file, where they ask for something else

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
        if not self.rows:
            self._print("what", "target", "median (from the minima)", "met")
            self._print("-" * 80, "-" * 8, "-" * 26, "---")
        self.rows.append({"what": what, "target": target, "measured": measured, "unit": unit, "met": met})
        self._print(what, target, shown, {True: "yes", False: "NO"}.get(met, ""))

    def _print(self, what, target, measured, met):
        print(f"| {what:<80} | {target:<8} | {measured:<26} | {met:<3} |", flush=True)

    def write(self, name, output, complete):
        """The record, in JSON: to ``output``; where that is None, to results/<name>-<date>.json if it is complete."""
        path = output or (HERE / "results" / f"{name}-{self.started[:10]}.json" if complete else None)
        if path is None:
            return
        record = {"date": self.started, **provenance(), **summarised({"table": self.rows, "figures": self.figures})}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"\nwritten: {path}")


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


def provenance():
    """The machine, the versions and the state of the source."""
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
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pandas")},
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


if __name__ == "__main__":
    module, function, given = sys.argv[1:]
    warnings.simplefilter("ignore")
    sys.modules["_measure"] = sys.modules["__main__"]
    print(json.dumps(getattr(importlib.import_module(module), function)(**json.loads(given))))
