"""A progress bar in the terminal or notebook, drawn by rich as scikit-learn's own is."""

from contextlib import contextmanager


@contextmanager
def bar(n, n_rows):
    """A function of the number of rows written that moves the bar. n : written already; n_rows : of all, or None."""
    from rich import progress as rich

    time = rich.TimeElapsedColumn() if n_rows is None else rich.TimeRemainingColumn()
    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn(), time
    with rich.Progress(*columns) as progress:
        task = progress.add_task(_words(n, n_rows), completed=n, total=n_rows)
        yield lambda n: progress.update(task, completed=n, description=_words(n, n_rows))
        progress.update(task, total=progress.tasks[task].completed)


def check_rich():
    """An ImportError that says what to do if rich is not installed."""
    try:
        import rich.progress  # noqa: F401
    except ImportError as error:
        raise ImportError(f"progress=True needs rich: pip install 'skhorseshoe[disk]' ({error}).") from error


def _words(n, n_rows):
    return f"{n} rows written" if n_rows is None else f"{n} of {n_rows} rows written"
