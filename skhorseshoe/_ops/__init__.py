"""Back ends: one module per kind of device, all with the same names.

This file holds what they share: the streams of random numbers. A variate is a function of
(seed; attempt, sweep, index, chain and purpose), so every back end draws the same ones.
"""

# The purposes: which conditional law a random number is for.
LATENT, COEF, LOCAL, LOCAL_AUX, GLOBAL, GLOBAL_AUX, MOMENTUM, ACCEPT, SWAP, SWAP_ACCEPT, EXPAND = range(11)
PERTURB, PROBE, PROBE_ROWS = range(11, 14)

MAX_CHAINS = 256  # the counter has 8 bits for the chain
