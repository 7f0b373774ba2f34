"""The recipe at the end of a warning: all parameters to change for the next fit, and how long that will take."""

from .._mcmc.burn_in import AUTO
from .parameters import DEFAULT_SWEEPS, DRAWS_PER_EFFECTIVE

_ADVISED_SWEEPS = 4000  # sweeps to advise with another scale or slab, whose mixing is not measured yet
_USUAL_AUTO_SWEEPS = 2000  # sweeps, burn-in included, that a fit with n_iter="auto" is assumed to take
_UNPREDICTED = {"separated", "separated in groups", "scales"}  # after these the chains do not predict the next
_ADVISED_DRAWS = 10_000  # draws of a chain to keep in the advised fit: more are thinned


def recipe_of(findings, params, chains):
    """A sentence, or "" if no parameter is to change.

    params : those of the classifier, by name. chains : ``findings.ChainQuality``.
    """
    changes = {name: value for finding in findings for name, value in finding.changes.items()}
    changes = {name: value for name, value in changes.items() if value != getattr(params, name)}
    if not changes:
        return ""
    is_another = bool(changes.keys() & {"slab_scale", "standardize"})  # another model, whose chains begin anew
    if is_another:
        measured = 0 if _UNPREDICTED & {finding.kind for finding in findings} else changes.get("n_iter", 0)
        least_burn_in = max(changes.get("burn_in", 0), 1000)
        for name, least in (("n_iter", max(measured, _ADVISED_SWEEPS)), ("burn_in", least_burn_in)):
            current = getattr(params, name)
            changes[name] = current if current == AUTO else max(current, least)
    changes = {name: value for name, value in changes.items() if value != getattr(params, name)}
    n_iter, burn_in = (changes.get(name, getattr(params, name)) for name in ("n_iter", "burn_in"))
    sweeps = _USUAL_AUTO_SWEEPS if n_iter == AUTO else n_iter + (chains.burn_in if burn_in == AUTO else burn_in)
    begins_anew = is_another or bool(changes.keys() & {"burn_in", "thin", "max_draws"})
    goes_on = not begins_anew and (params.warm_start or params.checkpoint is not None)  # and so keeps every draw
    n_kept = max(_ADVISED_DRAWS, int(DRAWS_PER_EFFECTIVE * (params.target_ess or 0) / chains.n_chains))
    if "n_iter" in changes and not goes_on and params.max_draws is None and n_iter > params.thin * n_kept:
        changes["thin"] = -(-n_iter // n_kept)
    if (is_another or "max_draws" in changes) and params.warm_start:
        changes["warm_start"] = False
    if begins_anew and params.checkpoint is not None:
        changes["checkpoint"] = "<another folder>"
    words = ", ".join(f"{name}={value!r}" for name, value in changes.items())
    return f"Fit again with {words}{_about(':', chains.seconds_per_sweep * sweeps)}."


def stricter(chains):
    """If only single columns are rough, two texts: what is judged in their place, and the parameters that would make
    them as precise, with the time that takes. Else None."""
    times_longer = chains.times_longer()
    if not times_longer:
        return None
    sweeps = times_longer * chains.sweeps
    more = f", n_iter={nice(sweeps)}" if sweeps > DEFAULT_SWEEPS else ""
    time = _about(",", chains.seconds_per_sweep * (chains.burn_in + sweeps))
    return chains.names[-1].strip("()"), f"target_ess={chains.wanted}{more}{time}"


def _about(mark, seconds):
    """Seconds in words after a mark; "" for 0, where no sweep was timed."""
    return f"{mark} about {in_time(seconds)}" if seconds else ""


def in_time(seconds):
    """Seconds in words, in the largest unit that gives 2 or more."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "a second"


def nice(n):
    """A round number not below n: 1, 1.5, 2, 3, 4, 5, 6 or 8 times a power of ten."""
    size = 10 ** (len(str(int(n))) - 1)
    return next(int(k * size) for k in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if k * size >= n)
