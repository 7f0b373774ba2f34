"""Methods of a fitted model: probabilities, classes, tables, selections, and draws for other packages."""
