"""The posterior of a share of partitions as a picture."""

import numpy as np
from markupsafe import Markup

from countwise.pages.densities import Density, density
from countwise.verification.proportion_posterior import BetaMixture, Summary

POINTS = 721  # of a curve: one for each pixel of its width


def share_chart(law: BetaMixture, summary: Summary, *, title: str) -> Markup:
    """The density of a share with its interval."""
    x = np.linspace(0, 1, POINTS)
    y = law.density(np.clip(x, 1e-6, 1 - 1e-6))
    curve = Density(
        x=x.tolist(),
        y=y.tolist(),
        lower=summary.lower,
        upper=summary.upper,
        mode=summary.mode,
        median=summary.median,
    )
    return density(curve, title=title, axis="share of partitions")
