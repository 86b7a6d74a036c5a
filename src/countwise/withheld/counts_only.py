"""Inference from adjusted counts alone: the exact route of each adjustment, and when to sample."""

from dataclasses import dataclass
from functools import cached_property

from countwise.arrays import IntArray
from countwise.errors import InputError
from countwise.negligible import LEFT_OUT
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.evidence import Evidence, How
from countwise.sumproduct.measured_nodes import measured
from countwise.sumproduct.node_noise import Noise
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.tree import Ties
from countwise.tables.hierarchy import Hierarchy
from countwise.withheld.draw_likelihood import DrawTies
from countwise.withheld.family_models import ByDraw, ByMode, ByRedraw, ByRedrawAndSum
from countwise.withheld.gibbs import Making
from countwise.withheld.mode_likelihood import ModeTies
from countwise.withheld.release_models import ByClip
from countwise.withheld.summed_total import TotalDraw, TotalMode

ADJUSTMENTS = ("mode", "draw-1", "draw-2", "clipped")
COSTLIEST = 1e10  # steps times windows of an exact route; one to two minutes


@dataclass(frozen=True, kw_only=True, eq=False)
class CountsOnly:
    """Counts as published, the noise behind them, and how they were made from noisy counts."""

    hierarchy: Hierarchy
    counts: tuple[IntArray, ...]
    order: tuple[IntArray, ...]
    noise: tuple[Noise, ...]
    adjust: str
    total: str = "independent"

    def __post_init__(self) -> None:
        """Refuse what no likelihood is known of."""
        if self.adjust not in ADJUSTMENTS:
            raise InputError(
                f"nothing is known of how {self.adjust!r} makes counts from noisy ones. To fix, "
                "infer from the published noisy counts: --from measurements."
            )
        if self.adjust == "draw-2" and self.total != "independent":
            raise InputError("Algorithm 2 takes the total's own noisy count: no summed total.")

    @property
    def seen(self) -> Evidence:
        """What the released total says about the true one, where its parts have no say."""
        how: How = "redrawn" if self.adjust == "draw-1" else "clipped"
        return Evidence(noise=self.noise[0], values=self.counts[0], how=how)

    @cached_property
    def summed_mode(self) -> TotalMode | None:
        """The rule of a total that is the mode given its noisy parts too, where they have a say."""
        if self.adjust != "mode" or not self._is_summed:
            return None
        rule = TotalMode(released=self._released, noise=self.noise[0].laws[0], parts=self._parts)
        return None if rule.ignores_parts(LEFT_OUT) else rule

    @property
    def summed_draw(self) -> TotalDraw | None:
        """The rule of a total that was drawn given its noisy parts too."""
        if self.adjust != "draw-1" or not self._is_summed:
            return None
        return TotalDraw(released=self._released, noise=self.noise[0].laws[0], parts=self._parts)

    @property
    def _is_summed(self) -> bool:
        return self.total == "summed" and self.noise[0].laws[0].variance > 0.0

    @property
    def _released(self) -> int:
        return int(self.counts[0][0])

    @property
    def _parts(self) -> tuple[IntegerLaw, ...]:
        return tuple(self.noise[1].laws[i] for i in self.noise[1].which)


def exact_route(published: CountsOnly, prior: Prior) -> tuple[Ties, str]:
    """Ties for exact messages, and the route in words."""
    hierarchy, counts, noise = published.hierarchy, published.counts, published.noise
    if published.adjust == "clipped":
        cells = Evidence(noise=noise[-1], values=counts[-1], how="clipped")
        above: list[list[Evidence]] = [[] for _ in hierarchy.offsets]
        return measured(hierarchy, [*above, [cells]], prior), "clipped counts, exact"
    if published.adjust == "mode":
        ties: Ties = ModeTies(
            hierarchy=hierarchy,
            counts=counts,
            order=published.order,
            noise=noise,
            seen=published.seen,
            total=published.summed_mode,
            prior=prior,
        )
        return ties, f"published counts{_of_total(published)}, mixture over cuts, exact"
    if published.summed_draw is not None:
        raise InputError(
            "the counts of a draw-1 release with a summed total have no exact route. To fix, "
            "take the sampler: --method gibbs."
        )
    ties = DrawTies(
        hierarchy=hierarchy,
        counts=counts,
        noise=noise,
        seen=published.seen,
        prior=prior,
        algorithm=int(published.adjust[-1]),
    )
    return ties, f"published counts{_of_total(published)}, quadrature over the scale, exact"


def _of_total(published: CountsOnly) -> str:
    return " (summed total)" if published.total == "summed" else ""


def takes_minutes(ties: Ties) -> bool:
    """Whether an exact route is left to the sampler."""
    return ties.cost > COSTLIEST


def making(published: CountsOnly) -> Making:
    """How the Gibbs sampler sees the release."""
    if published.adjust == "clipped":
        return ByClip(hierarchy=published.hierarchy, counts=published.counts)
    redraw = ByRedraw if published.summed_draw is None else ByRedrawAndSum
    kinds = {"mode": ByMode, "draw-1": redraw, "draw-2": ByDraw}
    return kinds[published.adjust](
        hierarchy=published.hierarchy,
        counts=published.counts,
        order=published.order,
        noise=published.noise,
        seen=published.seen,
        total=published.summed_mode or published.summed_draw,
    )
