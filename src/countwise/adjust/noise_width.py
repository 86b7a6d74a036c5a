"""What a histogram estimator may know of the noise."""

from fractions import Fraction
from typing import Protocol


class Spread(Protocol):
    """A noise law, as far as its size goes. `scale` is sensitivity/ε for the laws of counts."""

    @property
    def scale(self) -> Fraction:
        """The unit of spread."""
        ...

    @property
    def variance(self) -> float:
        """E Z²."""
        ...
