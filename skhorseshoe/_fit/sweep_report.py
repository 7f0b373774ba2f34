"""What a run logs of its sweeps: where it goes on, and now and then how far it is."""

from .._utils import progress
from .recipe import in_time


def log_where_it_goes_on(run, name):
    """Log the sweep after which a run goes on. name : of what the sweeps before it come from."""
    done, made = run.sweep, f"{run.done} after burn-in" if run.done else "all of them burn-in"
    last = run.burn_in + run.settings.n_iter
    how = f"goes on with sweep {done + 1}" if done < last and run.stopped_by == "n_iter" else "has nothing to add"
    progress.logger.info("%s holds %d sweeps of each chain (%s): the fit %s.", name, done, made, how)


def reporter_of(run, verbose):
    """A function of the number of sweeps done that logs a line now and then, and warns if a fit takes hours."""

    def sweeps():
        end, last = run.expected(), run.latest()
        return str(last) if end == last else f"about {end} and at most {last}"

    def left(t, seconds_per_sweep):
        end, last = run.expected(), run.latest()
        if end == t:
            return ""
        most = f", at most {in_time(seconds_per_sweep * (last - t))}" if end < last else ""
        return f", about {in_time(seconds_per_sweep * (end - t))} left{most}"

    def line(t, seconds_per_sweep):
        phase = "burn-in" if t <= run.burn_in else "sampling"
        return f"{phase}: sweep {t} of {sweeps()}{left(t, seconds_per_sweep)}"

    def too_long(t, seconds_per_sweep, seconds_left):
        return (
            f"At {seconds_per_sweep:.2g} s a sweep, {t} of {sweeps()} sweeps are done, and the others take about "
            f"{in_time(seconds_left)}. To shorten it, set target_ess or reduce rows or columns; checkpoint saves "
            "progress, verbose=1 reports progress, and Ctrl-C or max_time ends the fit with the draws so far."
        )

    return progress.reporter(verbose, run.expected, line, too_long)
