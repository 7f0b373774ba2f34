"""Pictures and tables of the pages of evidence, from the newest results of each benchmark; `conf.py` calls `draw_all`.

NAME.inc, which the pages include, and NAME.png go to docs/generated/evidence. Where there is no result yet, NAME.inc
says so.
"""

import json
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
SMALL = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}


def newest(*names):
    """The last record of the first of these names that has one, or None."""
    files = [file for name in names for file in sorted(RESULTS.glob(f"{name}-2*.json"), reverse=True)]
    return json.loads(files[0].read_text()) if files else None


def where_and_when(record):
    """A line on what the figures are of."""
    machine, commit = record["machine"], record["commit"][:10]
    cpu = machine["cpu"].split("(")[0].strip()
    line = f"{record['date'][:10]}, {cpu}, {machine['cores']} cores, commit {commit}"
    line += ", with changes" if record["tree is dirty"] else ""
    trial = record["figures"].get("settings", {}).get("quick")
    return f"*{line}.*" + (" **A trial with tiny sizes: the figures mean nothing yet.**" if trial else "")


def table(head, rows):
    """A list-table; cells are text, of which lines are folded."""
    lines = [".. list-table::", "   :header-rows: 1", *["   :class: many-columns"] * (len(head) > 9), ""]
    for cells in [head, *rows]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(cells)]
    return "\n".join(lines)


def picture(name, alt):
    return f".. image:: /generated/evidence/{name}.png\n   :alt: {alt}\n   :width: 100%"


def digits(value, n=2):
    """n significant digits, without an exponent."""
    if value is None or not np.isfinite(value):
        return ""
    places = max(0, n - 1 - int(np.floor(np.log10(abs(value))))) if value else 0
    return f"{value:,.{min(places, 6)}f}"


# Other samplers and predictors ----------------------------------------------------------------------------------------

MARKERS = "osD^vP"


def peers(record, folder):
    sets = {name: entry for name, entry in record["figures"].items() if "methods" in entry}
    methods = [m for m in next(iter(sets.values()))["methods"]]
    samplers = [m for m in methods if any("ESS/s" in e["methods"].get(m, {}) for e in sets.values())]
    figure = Figure(figsize=(7, 0.42 * len(sets) + 1.3), layout="constrained")
    ax = figure.subplots()
    for m, marker in zip(samplers, MARKERS, strict=False):
        at = [
            (e["methods"][m]["ESS/s"], k, e["methods"][m]["converged"])
            for k, e in enumerate(sets.values())
            if "ESS/s" in e["methods"][m]
        ]
        colour, converged = f"C{samplers.index(m)}", any(ok for *_, ok in at)
        for which, fill in ((True, colour), (False, "none")):
            some = [(x, k) for x, k, ok in at if ok is which]
            label = m if some and which is converged else None
            ax.plot(*np.reshape(some, (-1, 2)).T, marker, color=colour, mfc=fill, label=label)
    ax.set(xscale="log", yticks=range(len(sets)), yticklabels=[e["what"] for e in sets.values()])
    ax.set_xlabel("effective draws a second, burn-in included (open: chains that have not converged)")
    ax.set_ylim(len(sets) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(folder / "peers.png", dpi=120)
    return "\n\n".join(
        [
            picture("peers", "effective draws a second of each sampler on each data set"),
            losses(sets, methods),
            *speed(sets, samplers, record["figures"]["settings"]["budget"]),
            *scores(sets, methods),
        ]
    )


def by_data_set(title, sets, methods, cell, *rows):
    """A table with a column for each data set; cell : of what one method found there, to text."""
    rows = [*rows, *([m, *(cell(e["methods"][m]) for e in sets.values())] for m in methods)]
    return f"{title}:\n\n" + table(["", *(e["what"] for e in sets.values())], rows)


def speed(sets, samplers, budget):
    def figure(of):
        def cell(one):
            if "ESS/s" not in one:
                return "no run" if one.get("failed", "").startswith("no run") else "failed"
            return of(one) if one["converged"] else f"*{of(one)}*"

        return cell

    sizes = ["rows x columns", *(f"{e['shape']['rows']:,} x {e['shape']['columns']}" for e in sets.values())]
    guess = "in italics where the chains have not converged, so that it is a guess"
    return [
        by_data_set(
            f"Effective draws a second, burn-in included; {guess}; *no run* ended in {budget:g} s",
            sets,
            samplers,
            figure(lambda one: digits(one["ESS/s"])),
            sizes,
        ),
        by_data_set("Without burn-in", sets, samplers, figure(lambda one: digits(one["ESS/s, sampling"]))),
        by_data_set("Worst R-hat", sets, samplers, figure(lambda one: f"{one['rhat']:.3f}")),
        by_data_set("Peak memory, MB", sets, samplers, figure(lambda one: f"{one['peak memory'] / 1e6:.0f}")),
    ]


def scores(sets, methods):
    def of(name):
        return lambda one: f"{one[name]:.3f}" if name in one else ""

    return [
        by_data_set(f"{title} on rows held out", sets, methods, of(name))
        for title, name in (("Log loss", "log loss"), ("AUC", "AUC"))
    ]


def losses(sets, methods):
    """Where another method does better, said plainly."""
    lines = []
    for e in sets.values():
        ours = e["methods"].get("skhorseshoe", {})
        for m in methods:
            other = e["methods"][m]
            if other.get("converged") and other["ESS/s"] > ours.get("ESS/s", 0):
                times = other["ESS/s"] / max(ours.get("ESS/s", 0), 1e-9)
                lines.append(f"- {e['what']}: {m} gives {times:.1f} times as many effective draws a second.")
        if "log loss" in ours:
            better = [m for m in methods if e["methods"][m].get("log loss", np.inf) < ours["log loss"] - 0.005]
            if better:
                lines.append(f"- {e['what']}: the log loss is lower by more than 0.005 with {'; '.join(better)}.")
        if ours.get("converged") is False:
            lines.append(f"- {e['what']}: our chains have not converged in their time either.")
    return "Where we lose:\n\n" + ("\n".join(lines) or "- nowhere in this run.")


# Exactness ------------------------------------------------------------------------------------------------------------


def exactness(record, folder):
    figures = record["figures"]
    parts = []
    if "calibration" in figures:
        ranks(figures["calibration"], folder / "exactness.png")
        parts += [picture("exactness", "rank histograms of each sampler and option"), p_values(figures["calibration"])]
    if "agreement" in figures:
        head = ["fit", "sweeps", "largest of the differences, errors", "their root mean square", "worst R-hat"]
        rows = [
            [n, f"{e['sweeps']:,}", f"{e['largest']:.1f}", f"{e['rms']:.2f}", f"{e['rhat']:.3f}"]
            for n, e in figures["agreement"].items()
        ]
        parts.append("Differences of posterior means from those of NUTS:\n\n" + table(head, rows))
    if "geweke" in figures:
        tests = figures["geweke"].items()
        for planted, title in (
            (False, "Sweeps as they are, of which the largest change must be below 4"),
            (True, "Planted errors, which must be above 6"),
        ):
            rows = [[f"``{name}``", f"{e['z']:.1f}"] for name, e in tests if e["planted"] is planted]
            parts.append(f"{title}:\n\n" + table(["test", "standard errors"], rows))
    return "\n\n".join(parts)


def ranks(cases, file):
    """A row for each case, a small histogram for each unknown, the band that 99 % of bins should be in."""
    columns = max(len(case["counts"]) for case in cases.values())
    figure = Figure(figsize=(7, 0.75 * len(cases) + 0.3), layout="constrained")
    axes = figure.subplots(len(cases), columns, squeeze=False, sharex=True)
    for line, (name, case) in zip(axes, cases.items(), strict=True):
        expected = case["data sets"] / 10
        spread = 2.58 * np.sqrt(expected * 0.9)
        for ax in line:
            ax.set(xticks=[], yticks=[], frame_on=False)
        for ax, (what, counts) in zip(line, case["counts"].items(), strict=False):
            ax.axhspan(max(0, expected - spread), expected + spread, color="0.9")
            ax.bar(range(10), counts, width=0.9, color="C0")
            ax.axhline(expected, color="0.4", linewidth=0.6)
            ax.set_title(what, fontsize=7, pad=1)
        line[0].set_ylabel(name.replace(", ", ",\n"), rotation=0, ha="right", va="center", fontsize=7)
    figure.savefig(file, dpi=120)


def p_values(cases):
    rows = [
        [name, case["data sets"], ", ".join(f"{what} {p:.2f}" for what, p in case["p"].items())]
        for name, case in cases.items()
    ]
    return "p values of the chi-square test of uniformity:\n\n" + table(
        ["sampler, option", "data sets", "p values"], rows
    )


# Cost, and the paper's figure -----------------------------------------------------------------------------------------


def scaling(record, folder):
    """A panel for each thing that grows; the samplers beside one another."""
    panels = {}
    for line in [*record["figures"]["lines"].values(), *workers()]:
        panels.setdefault((line["x"], line["y"]), []).append(line)
    height = -(-len(panels) // 3)
    figure = Figure(figsize=(7, 2 * height), layout="constrained")
    axes = figure.subplots(height, 3, squeeze=False).ravel()
    for ax in axes[len(panels) :]:
        ax.remove()
    rows = []
    for ax, ((grows, measured), lines) in zip(axes, panels.items(), strict=False):
        for line, marker in zip(lines, "os", strict=False):
            x, y = np.array(line["at"]).T
            ax.loglog(x, 1e-6 * y if measured == "bytes" else y, f"{marker}-")
            rows.append([line["what"], grows, measured, f"{line['slope']:.2f}", line["expected"]])
        values = [x for x, _ in lines[0]["at"]]
        ax.minorticks_off()
        ax.set_xticks(values, [f"{x:,}" for x in values], rotation=20, ha="right")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set(xlabel=grows, ylabel="MB" if measured == "bytes" else measured)
    handles = axes[0].get_lines()
    figure.legend(handles, ['"hmc"', '"gibbs"'], loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(folder / "scaling.png", dpi=120)
    head = ["what", "grows with", "of", "slope", "expected"]
    return picture("scaling", "seconds and bytes as work grows") + "\n\n" + table(head, rows)


def workers():
    """What the workers of a cluster add to a sweep, as a line of ``scaling``; none where that has not been measured."""
    record = newest("scaling-workers", "dask-overhead")
    if record is None or "lines" in record["figures"]:
        return list(record["figures"]["lines"].values()) if record else []
    asked = [re.fullmatch(r"(\d+) workers: a question beside its pass", row["what"]) for row in record["table"]]
    at = [
        (int(found[1]), 1e-3 * row["measured"]["median"])
        for found, row in zip(asked, record["table"], strict=True)
        if found
    ]
    slope = np.polyfit(*np.log(np.array(at)).T, 1)[0]
    expected = "1: each worker is asked and answers"
    return [{"what": "a question", "x": "workers", "y": "seconds", "at": at, "slope": slope, "expected": expected}]


def paper(record, folder):
    sizes = record["figures"]["sweeps"]
    p_values = sorted({one["p"] for one in sizes})
    figure = Figure(figsize=(7, 3), layout="constrained")
    for ax, p in zip(np.atleast_1d(figure.subplots(1, len(p_values), sharey=True)), p_values, strict=True):
        for k, (sampler, threads) in enumerate(sorted({(one["sampler"], one["threads"]) for one in sizes})):
            some = sorted(
                (one["n"], one["seconds"])
                for one in sizes
                if (one["p"], one["sampler"], one["threads"]) == (p, sampler, threads)
            )
            ax.loglog(
                *np.array(some).T,
                "o-",
                color=f"C{k}",
                label=f"{sampler}, {threads} thread{'s' * (threads > 1)}",
                markersize=4,
            )
        for label, marker, style in (("the paper", "paper", "k*"), ("an H200, modelled", "modelled", "k_")):
            some = [(one["n"], one["seconds"]) for one in record["figures"]["beside"][marker] if one["p"] == p]
            ax.loglog(*np.array(some).reshape(-1, 2).T, style, label=label, markersize=9)
        ax.set(title=f"p = {p:,}", xlabel="rows")
    figure.axes[0].set_ylabel("seconds of 10,000 sweeps")
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(folder / "paper.png", dpi=120)
    parts = [picture("paper", "seconds of 10,000 sweeps over rows and columns"), paper_table(record)]
    wide = [one for name in ("paper-wide", "paper-10000-columns") if (one := newest(name))]
    parts += [f"10,000 columns:\n\n{where_and_when(one)}\n\n{paper_table(one)}" for one in wide]
    if real := record["figures"].get("real"):
        head = ["rows", "sampler", "seconds", "least ESS", "worst R-hat"]
        rows = [
            [o["rows"], o["sampler"], digits(o["seconds"], 3), digits(o["ess"], 3), f"{o['rhat']:.3f}"] for o in real
        ]
        beside = [
            f"{one['what']} {digits(one['seconds'])} s"
            for kind in ("paper", "modelled")
            for one in record["figures"]["beside"][kind]
            if f"{one['n']:,} x {one['p']}" == real[0]["size"]
        ]
        text = f"{real[0]['size']}, rare events, until the least ESS is 400; 10,000 sweeps there: {', '.join(beside)}."
        parts.append(f"{text}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def paper_table(record):
    """A row for each size; how many sweeps were made where they are fewer."""
    cells = {}
    for one in record["figures"]["sweeps"]:
        how = f"{one['sampler']}, {one['threads']} thread{'s' * (one['threads'] > 1)}"
        made = f" (from {one['swept']:,})" if one["swept"] < 10_000 else ""
        cells.setdefault((one["n"], one["p"]), {})[how] = digits(one["seconds"]) + made
    for one in (one for kind in ("paper", "modelled") for one in record["figures"]["beside"][kind]):
        if (one["n"], one["p"]) in cells:
            cells[one["n"], one["p"]][one["what"]] = digits(one["seconds"])
    head = list(dict.fromkeys(how for row in cells.values() for how in row))
    rows = [[f"{n:,} x {p:,}", *(row.get(how, "") for how in head)] for (n, p), row in cells.items()]
    return "Seconds of 10,000 sweeps, extrapolated where fewer were made:\n\n" + table(["rows x columns", *head], rows)


# Selection ------------------------------------------------------------------------------------------------------------


def selection(record, folder):
    """Tables of rules and packages: on data from the model, and on blocks of correlated columns."""
    claims, found = {}, {}
    for name, one in record["figures"].items():
        if ", the first " in name:
            data, _, rule = name.partition(": ")
            keys = ("false share", "false of all claims", "signals found", "signals located")
            seconds = digits(one.get("processor seconds a data set", np.nan))
            claims[rule] = [*(f"{one[key]:.2f}" for key in keys), f"{one['columns per claim']:.1f}", seconds]
    kinds = "share of blocks found|wrong blocks, mean|columns in a claim, mean"
    for row in record["table"]:
        asked = re.search(rf"blocks .*: (.+), ({kinds})$", row["what"])
        if asked:
            found.setdefault(asked[1], []).append(f"{row['measured']:.2f}")
    head = ["rule", "false, mean", "of all claims", "signals found", "located", "columns a claim", "seconds"]
    return "\n\n".join(
        [
            f"{data} data sets; the seconds are those of other packages:",
            table(head, [[rule, *cells] for rule, cells in claims.items()]),
            "100 x 2000 in blocks of 20 with correlations of 0.7; a column of each of three blocks matters:",
            table(
                ["rule", "share of blocks found", "wrong blocks a data set", "columns a claim"],
                [[rule, *cells] for rule, cells in found.items()],
            ),
        ]
    )


def draw_all(app):
    """Write every picture and table; they are there before the pages are read."""
    folder = Path(app.srcdir) / "generated" / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (peers, exactness, scaling, paper, selection):
        name = draw.__name__
        record = newest("selection-peers", "selection-sets") if draw is selection else newest(name)
        text = f"*Not measured yet:* ``python benchmarks/{name}.py`` *does it.*"
        if record is not None:
            with mpl.rc_context(SMALL):
                text = where_and_when(record) + "\n\n" + draw(record, folder)
        (folder / f"{name}.inc").write_text(text + "\n")
