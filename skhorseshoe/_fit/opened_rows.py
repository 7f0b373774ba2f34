"""The rows of a fit as the sampler has them, and what they tell before it starts."""

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from .._data.collinear_sets import CollinearSets, collinear_sets
from .._data.column_checks import check_size
from .._data.row_groups import Groups
from .._data.rows import Rows
from .._utils import progress
from .._utils.names import names_to_warn_of
from . import findings, input_findings
from .watched import Watched


class Inspected(NamedTuple):
    """What rows tell before sampling."""

    names: np.ndarray  # of the columns that the sampler has
    one_sided: object  # ``OneSidedColumns`` of these
    sets: CollinearSets
    unbounded: dict  # as in ``Run``
    watched: Watched | None  # what has to converge beside single columns, where these outnumber the rows
    findings: list  # about the scales of the columns
    pairs: dict  # of ``Rows.pairs``


def open_rows(params, data, plan, threads):
    ops, fit_intercept, standardize = plan.device.ops, params.fit_intercept, params.standardize
    if data.open_on_cluster is not None:
        of_columns = data.unpenalized, standardize, data.prior_scale
        return data.open_on_cluster(params.likelihood, fit_intercept, ops, threads, *of_columns)
    stored = slice(None) if plan.stored is None else plan.stored
    X, y, weight, codes, offset = plan.rows
    groups = None
    if codes is not None:
        labels, levels, scale, slopes = data.groups
        n, names = (len(labels[None]), ()) if levels is None else (len(levels), tuple(labels))
        groups = Groups(codes, n, scale, levels, names)
        if slopes is not None:
            each = np.arange(len(codes), dtype=np.int32)
            of_rows = np.ascontiguousarray(levels[codes][:, slopes.factors])
            groups = Groups(each, len(codes), scale, of_rows, tuple(slopes.names), tuple(slopes.columns))
    placed, words = ops.place(X, params.n_chains, plan.settings.kind_on_device)
    if params.verbose and words:
        progress.logger.info(words)
    of_rows = {"weight": weight, "offset": offset, "groups": groups, "likelihood": params.likelihood}
    of_columns = {"unpenalized": data.unpenalized[stored], "prior_scale": data.prior_scale[stored]}
    of_columns |= {"numbers": plan.stored, "standardize": standardize}
    return nullcontext(Rows(placed, y, fit_intercept, ops, threads, **of_rows, **of_columns))


def inspect(params, data, plan, rows):
    names = np.fromiter(names_to_warn_of(data.columns), dtype=object)
    names = names if plan.stored is None else names[plan.stored]
    check_size(rows.columns, rows.dtype, names)
    one_sided, sets = rows.one_sided_columns, collinear_sets(rows, data.shape[0])
    watched = Watched(rows, params.target_ess is None) if data.outnumber else None
    unbounded = rows.usual_values(one_sided.columns[~findings.are_bound(params.slab_scale, one_sided, rows)])
    of_columns = input_findings.of_columns(rows, one_sided.rounded, names, params.standardize)
    return Inspected(names, one_sided, sets, unbounded, watched, of_columns, rows.pairs())
