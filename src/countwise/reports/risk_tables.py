"""What pages about risk show, as tables for other programs."""

from collections.abc import Sequence

import polars as pl

from countwise.risk.advice import Option
from countwise.risk.mechanisms import CountError, HistogramError
from countwise.tables.hierarchy import Hierarchy


def mechanisms_table(pairs: Sequence[tuple[CountError, HistogramError]]) -> pl.DataFrame:
    """One row a mechanism and ε: errors of one count, and of the histogram."""
    return pl.DataFrame(
        [
            {
                "mechanism": one.mechanism,
                "epsilon": float(one.epsilon),
                "variance": one.variance,
                "mean_absolute": one.mean_absolute,
                **{f"within_{level}": reach for level, reach in one.within.items()},
                "l1": whole.l1,
                "l1_sd": whole.l1_sd,
                "l2": whole.l2,
                "l2_sd": whole.l2_sd,
                "l1_clipped": whole.l1_clipped,
            }
            for one, whole in pairs
        ]
    )


def advice_table(options: Sequence[Option], hierarchy: Hierarchy) -> pl.DataFrame:
    """One row an option, the best first: errors of each level, and of the cells together."""
    return pl.DataFrame(
        [
            {
                "adjustment": each.adjustment,
                "mechanism": each.mechanism,
                **{
                    f"rmse_{level}": error
                    for level, error in zip(hierarchy.levels, each.level_rmse, strict=True)
                },
                "cells_sse": each.cells_sse,
                "cells_error": each.cells_error,
                "all_sse": each.all_sse,
            }
            for each in options
        ]
    )
