"""What pages about risk show, as tables for other programs."""

from collections.abc import Sequence

import polars as pl

from countwise.risk.mechanisms import CountError, HistogramError


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
