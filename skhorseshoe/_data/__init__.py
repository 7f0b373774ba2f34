"""Checks of users' data, and rows that answer the sampler's questions, in memory, on disk or on a cluster."""
