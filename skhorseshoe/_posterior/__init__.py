"""What a fitted model answers: probabilities, classes, tables, selections, and draws for others."""
