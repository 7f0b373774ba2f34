"""The samplers: their laws, their chains and what is kept of a run. They know no device."""
