"""One fit: from checked data and a plan to a sampled model, with all that watches it meanwhile."""
