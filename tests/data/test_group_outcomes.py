"""What y tells of groups before sampling: outcomes that are copied and numbers that a design fixes, and no others."""

import numpy as np
import pytest

from skhorseshoe._data.group_outcomes import Copied, Matched, fixed_outcomes


def of(y, group, *weight, **more):
    return fixed_outcomes(np.asarray(y, np.uint8), np.unique(group, return_inverse=True)[1], *weight, **more)


def matched_sets(sizes):
    """The group of each row, and whether it is the first of its group."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.append(True, group[1:] != group[:-1])


def test_sets_with_one_event_each(seed):
    rng = np.random.default_rng(seed)
    group, event = matched_sets(np.full(400, 2))
    assert of(event, group) == Matched(400, 400, 1, 1.0)
    group, event = matched_sets(rng.integers(2, 6, 300))
    assert of(event, group) == Matched(300, 300, 1, 1.0)
    assert of(~event, group) == Matched(300, 300, 0, 1.0)
    some = rng.random(len(group)) < 0.9  # rows are lost, some of them cases
    found = of(event[some], group[some])
    assert (found.by, found.number) == (1, 1.0)
    assert found.n_alike < found.n <= 300


def test_other_designs(seed):
    rng = np.random.default_rng(seed)
    choices = np.concatenate([rng.permutation([1, 1, 0, 0, 0, 0]) for _ in range(60)])
    assert of(choices, np.arange(360) // 6) == Matched(60, 60, 1, 2.0)
    sizes = 2 * rng.integers(1, 6, 100)
    halves = np.concatenate([np.arange(size) % 2 for size in sizes])
    assert of(halves, np.repeat(np.arange(100), sizes)) == Matched(100, 100, None, 0.5)


def test_weights_count_rows_where_they_are_whole(seed):
    rng = np.random.default_rng(seed)
    group, y = np.arange(200) // 2, np.arange(200) % 2
    controls = np.where(y, 1.0, rng.integers(1, 5, 200))  # one case and some equal controls in a row
    assert of(y, group, controls) == Matched(100, 100, 1, 1.0)
    assert of(y, group, np.where(y, 2.5, 0.6), by_class=True) == Matched(100, 100, 1, 1.0)
    for counts in (rng.integers(1, 20, 200).astype(float), rng.uniform(0.5, 20, 200)):
        assert of(y, group, counts) is None  # rows of both classes that are counted, in no design
    assert of(y[::2] | (np.arange(100) < 40), np.arange(100), np.full(100, 4.0)) == Copied(100, 0)


def test_outcomes_of_groups_that_are_copied(seed):
    rng = np.random.default_rng(seed)
    group, outcome = np.repeat(np.arange(80), 4), np.arange(80) < 30
    y = outcome[group]
    assert of(y, group) == of(~y, group) == Copied(80, 0)
    y[[0, 200]] ^= True
    assert of(y, group) == Copied(80, 2)
    alone = np.arange(50)
    assert of(np.append(outcome[group], rng.random(50) < 0.4), np.append(group, 100 + alone)) == Copied(80, 0)
    assert of(np.arange(400) < 200, np.arange(400) // 50) == Copied(8, 0)  # eight subjects, fifty windows of each
    assert of((np.arange(500) < 15).repeat(4), np.arange(2000) // 4) == Copied(500, 0)


@pytest.mark.parametrize("sd", [0.0, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("size", [2, 3, 5, 20])
@pytest.mark.parametrize("mean", [0.0, -2.5])
def test_rows_from_the_model_are_not_taken_for_a_design(sd, size, mean, seed):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(300), size)
    x, noise = rng.standard_normal((2, len(group)))
    assert of(mean + x + sd * rng.standard_normal(300)[group] + noise > 0, group) is None


def test_what_else_is_no_design(seed):
    rng = np.random.default_rng(seed)
    group, event = matched_sets(np.full(19, 2))
    assert of(event, group) is None  # as chance may have it
    treated = np.tile([1.0, -1.0], 300)  # twice each, under treatment and without
    group = np.arange(600) // 2
    assert of(2 * treated + rng.standard_normal(300)[group] + rng.standard_normal(600) > 0, group) is None
    assert of(rng.random(5000) < 0.004, np.arange(5000) // 5) is None
    assert of(rng.random(100) < 0.5, np.zeros(100, int)) is None
