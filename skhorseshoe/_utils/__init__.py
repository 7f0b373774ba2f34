"""What knows nothing of the model: threads, signals, files, memory, names."""
