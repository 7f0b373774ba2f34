"""How a fit goes about it: which sampler."""

_TUNING = 100  # sweeps of burn-in that "hmc" needs to tune itself


def choose(sampler, burn_in, whole_weights, wide, many):
    """The sampler for "auto": "collapsed" where there are more columns than rows (``wide``), else "hmc", unless burn-in
    is too short to tune it or the columns are too ``many`` for its factors; but only "hmc" can have all weights."""
    if sampler != "auto":
        return sampler
    if wide and whole_weights:
        return "collapsed"
    return "hmc" if (burn_in >= _TUNING and not many) or not whole_weights else "pxda"
