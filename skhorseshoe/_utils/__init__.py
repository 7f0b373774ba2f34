"""What knows nothing of the model: threads, interrupts, files, memory, names."""
