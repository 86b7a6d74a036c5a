"""Verdicts: enclosures contain the values, proofs prove what they say, doubt is admitted."""

from fractions import Fraction
from itertools import permutations
from math import inf
from pathlib import Path

import mpmath
import numpy as np
import pytest

from countwise.errors import ChoiceError, InputError
from countwise.noise.laws import Geometric, Laplace
from countwise.risk.claim_proof import certify, cover, proven
from countwise.risk.closed import enclosure, laplace_risk
from countwise.risk.estimator_claims import EstimatorClaim, parse_claim
from countwise.risk.gap import Gap
from countwise.risk.search import candidate, search_by_simulation, search_grid
from countwise.risk.signs import worse_on_grid
from countwise.risk.terms import hump

FOUR = ("identity", "clipped", "resized", "noisefirst")
TRUE = {("clipped", "identity"), ("resized", "identity")}
TENTHS = [Fraction(i, 10) for i in range(1, 31)]


def gap_values(claim: EstimatorClaim, a: np.ndarray, d: np.ndarray) -> np.ndarray:
    left, right = (laplace_risk(name, a, a + d) for name in (claim.left, claim.right))
    return left - float(claim.factor) * right


@pytest.mark.parametrize(("left", "right"), list(permutations(FOUR, 2)))
def test_every_ordered_pair(left: str, right: str) -> None:
    verdict = certify(EstimatorClaim(left=left, right=right))
    if (left, right) in TRUE:
        assert (verdict.answer, verdict.proof, verdict.tolerance) == ("certified", "signs", 0.0)
        assert "+" not in verdict.formula.replace("(a+b)", "")
    else:
        assert verdict.answer == "refuted"
        assert verdict.counterexample.left[0] > verdict.counterexample.right[1]


def test_open_questions_of_the_thesis() -> None:
    """Section 3.5: resized is worse than clipped at (0, 16), ε = 0.1; never worse than identity."""
    at = ((0, 16), Fraction(1, 10))
    point = certify(parse_claim("resized <= clipped"), at=at).counterexample
    assert point.histogram == (0, 16)
    assert 3.49 < point.gap_above < 3.4935
    assert certify(parse_claim("resized <= identity")).answer == "certified"


@pytest.mark.parametrize(
    "text",
    [
        "noisefirst <= identity",
        "resized <= 1.2*clipped",
        "segmented <= noisefirst",
        "noisefirst <= resized",
    ],
)
def test_enclosures_contain_the_gap(text: str) -> None:
    claim = parse_claim(text)
    gap = Gap(claim)
    rng = np.random.default_rng(0)
    for _ in range(120):
        low, width = rng.exponential(3, 2), rng.choice([0, 1e-3, 0.1, 1, 5]) * rng.random(2)
        box = tuple((float(x), float(x + w)) for x, w in zip(low, width, strict=True))
        ball = gap.range(box)
        values = gap_values(claim, *(rng.uniform(*side, 60) for side in box))
        assert values.max() <= float(ball.upper()) + 1e-13
        assert values.min() >= float(ball.lower()) - 1e-13
    ball = gap.range(((0.0, inf), (4.0, inf)))
    values = gap_values(claim, rng.exponential(9, 500), 4 + rng.exponential(9, 500))
    assert float(ball.lower()) <= values.min()
    assert values.max() <= float(ball.upper())


def test_enclosures_shrink_with_the_square_of_the_box() -> None:
    claim = parse_claim("noisefirst <= resized")
    gap = Gap(claim)
    excess = []
    for width in (0.2, 0.05):
        sides = [np.linspace(low, low + width, 30) for low in (1.0, 2.0)]
        values = gap_values(claim, *np.meshgrid(*sides))
        ball = gap.range(((1.0, 1 + width), (2.0, 2 + width)))
        excess.append(float(ball.upper()) - values.max())
    assert 0 < excess[1] < excess[0] / 8
    assert float(gap.range(((1.0, 1.0), (2.0, 2.0))).rad()) < 1e-12


def test_humps() -> None:
    for power, rate, low, high in ((3, 1, 0, 9), (2, 2, 0.5, 4), (0, 1, 1, 2), (1, -1, 0, 2)):
        inside = np.linspace(low, high, 4001)
        values = inside**power * np.exp(-rate * inside)
        ball = hump(power, rate, (low, high))
        assert float(ball.upper()) == pytest.approx(values.max(), rel=1e-5)
        assert float(ball.lower()) == pytest.approx(values.min(), rel=1e-5, abs=1e-7)
    assert float(hump(2, 1, (5.0, inf)).upper()) == pytest.approx(25 * np.exp(-5))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("noisefirst <= 1.3*identity", "certified"),
        ("noisefirst <= 1.299*identity", "refuted"),
        ("noisefirst <= 1.29974*identity", "refuted"),
        ("noisefirst <= 1.29975*identity", "certified"),
        ("resized <= 4/3*clipped", "certified"),
        ("resized <= 1.333*clipped", "refuted"),
        ("clipped <= 1.34*resized", "certified"),
        ("clipped <= 1.33*resized", "refuted"),
        ("noisefirst <= 2*clipped", "certified"),
        ("segmented <= noisefirst", "refuted"),
        ("identity <= identity", "certified"),
    ],
)
def test_with_factors(text: str, answer: str) -> None:
    verdict = certify(parse_claim(text))
    assert verdict.answer == answer
    if verdict.proof == "boxes":
        assert verdict.worst <= verdict.tolerance


def test_boxes_agree_with_signs() -> None:
    claim = parse_claim("resized <= identity")
    verdict = cover(claim, Gap(claim), tolerance=1e-9, boxes=20_000)
    assert (verdict.answer, verdict.left) == ("certified", ())
    assert 0 < verdict.boxes < 5_000


def test_a_false_claim_is_never_certified_by_boxes() -> None:
    for text in ("noisefirst <= identity", "resized <= clipped", "noisefirst <= 1.2996*identity"):
        claim = parse_claim(text)
        verdict = cover(claim, Gap(claim), tolerance=1e-9, boxes=400)
        assert verdict.answer == "undecided"
        assert verdict.left
        assert verdict.worst > 0


def test_undecided_names_the_region_left() -> None:
    verdict = certify(parse_claim("noisefirst <= 1.29975*identity"), boxes=12)
    assert verdict.answer == "undecided"
    assert any(low <= 3.27 <= high for _, (low, high) in verdict.left)


@pytest.mark.parametrize(
    "text", ["resized < identity", "resized", "<= identity", "a <= b <= c", ""]
)
def test_unreadable_claims(text: str) -> None:
    with pytest.raises(InputError, match="can not read the claim"):
        parse_claim(text)


def test_unknown_estimator_lists_the_known() -> None:
    with pytest.raises(ChoiceError, match="identity, clipped, resized, noisefirst, segmented"):
        parse_claim("resize <= identity")
    assert str(parse_claim(" noisefirst ≤ 1.3 * identity")) == "noisefirst <= 1.3*identity"


def test_grid_finds_what_the_thesis_missed() -> None:
    found = search_grid("noisefirst", "identity", counts=range(101), epsilons=TENTHS)
    assert found.points == 306_030
    assert found.counterexamples == far_pairs(101, TENTHS) == 295_808
    assert far_pairs(101, TENTHS[:10]) == 94_408
    assert found.top[0].ratio == pytest.approx(1.2997, abs=1e-4)
    assert found.proof.gap_above > 0.99
    within = dict(found.by_epsilon)
    assert all(within[epsilon] > 0 for epsilon in TENTHS)


@pytest.mark.study
@pytest.mark.timeout(1200)
def test_the_larger_grid_of_the_thesis_is_counted_in_full() -> None:
    """All 30,060,030 points, each sign proven, against the distances beyond the gap's root."""
    found = search_grid("noisefirst", "identity", counts=range(1001), epsilons=TENTHS)
    assert found.points == 30_060_030
    assert found.counterexamples == far_pairs(1001, TENTHS) == 29_956_208


def merging_gap(distance: mpmath.mpf) -> mpmath.mpf:
    """½E[d²-V²; |V-d| ≤ √8] at ε = 1, by quadrature with the density of a sum of two noises."""
    reach = 2 * mpmath.sqrt(2)
    ends = [distance - reach, *([0] if distance < reach else []), distance + reach]
    density = mpmath.quad(
        lambda v: (distance**2 - v**2) * (1 + abs(v)) * mpmath.exp(distance - abs(v)) / 4, ends
    )
    return density / 2


def far_pairs(size: int, epsilons: list[Fraction]) -> int:
    """Pairs of counts below `size`, with an ε, for which |a-b|·ε is beyond the gap's root."""
    root = mpmath.findroot(merging_gap, 1.4)
    return sum(
        2 * (size - d) for epsilon in epsilons for d in range(size) if d * epsilon > float(root)
    )


def test_no_counterexample_is_dropped_for_being_small() -> None:
    """The gap falls like e^-d and stays positive: 1e-1300 at the far corner of the wide grid."""
    for epsilons in (TENTHS, TENTHS[:10]):
        found = search_grid("noisefirst", "identity", counts=range(101), epsilons=epsilons)
        assert found.counterexamples == far_pairs(101, epsilons)
    for distance in (1.4, 2, 2.9, 8, 20, 60, 300, 3000):
        assert merging_gap(mpmath.mpf(distance)) > 0
    corner = search_grid("noisefirst", "identity", counts=(0, 999, 1000), epsilons=TENTHS[-1:])
    assert corner.counterexamples == 6
    assert 0 < corner.proof.gap_above < 0.2
    pages = Path(__file__).parents[1] / "docs"
    risk, reproduction = ((pages / name).read_text() for name in ("risk.md", "reproduction.md"))
    assert f"{far_pairs(101, TENTHS[:10]):,}" in reproduction
    assert f"{far_pairs(101, TENTHS):,} of {101 * 101 * 30:,}" in risk
    assert f"{far_pairs(1001, TENTHS):,} of {1001 * 1001 * 30:,}" in risk


@pytest.mark.parametrize("kind", [Laplace, Geometric])
@pytest.mark.parametrize("pair", list(permutations(("clipped", "resized", "segmented"), 2)))
def test_signs_on_a_grid_are_those_of_wide_balls(kind: type, pair: tuple[str, str]) -> None:
    """Every point by 2,000 bits, where the grid takes doubles where it can."""
    law, claim, counts = (
        kind(scale=Fraction(2, 3)),
        EstimatorClaim(left=pair[0], right=pair[1]),
        (0, 2, 40),
    )
    worse, _, _ = worse_on_grid(claim, counts, law)
    for i, a in enumerate(counts):
        for j, b in enumerate(counts):
            left, right = (
                enclosure(name, [Fraction(a), Fraction(b)], law, precision=2000) for name in pair
            )
            assert (left > right) or (left < right)
            assert worse[i, j] == (left > right)


def test_estimators_that_are_one_under_geometric_noise() -> None:
    """With ε = 3 no bins merge but equal ones: both merging estimators are the identity."""
    for worse in ("noisefirst", "segmented"):
        found = search_grid(
            worse, "identity", counts=range(9), epsilons=[Fraction(3)], kind=Geometric
        )
        assert (found.counterexamples, found.top, found.proof) == (0, (), None)


def test_grid_finds_nothing_where_there_is_nothing() -> None:
    for worse in ("clipped", "resized"):
        for kind in (Geometric, None):
            keywords = {} if kind is None else {"kind": kind}
            found = search_grid(worse, "identity", counts=range(60), epsilons=TENTHS, **keywords)
            assert (found.counterexamples, found.top, found.proof) == (0, (), None)


def test_geometric_counterexample_is_proven() -> None:
    found = search_grid(
        "noisefirst", "identity", counts=range(20), epsilons=TENTHS[:10], kind=Geometric
    )
    assert found.proof.left[0] > found.proof.right[1]
    claim = EstimatorClaim(left="noisefirst", right="identity")
    assert proven(claim, (5, 5), Fraction(1), kind=Geometric) is None


def test_more_bins_by_a_sequential_test() -> None:
    keywords = {"bins": 4, "counts": range(20), "epsilons": [Fraction(1)]}
    rng = np.random.default_rng(0)
    found = search_by_simulation(
        "noisefirst", "identity", **keywords, error_probability=1e-6, rng=rng
    )
    assert found is not None
    assert found.gap > 4.7 * found.standard_error
    assert len(found.histogram) == 4
    none = search_by_simulation("clipped", "identity", **keywords, error_probability=1e-3, rng=rng)
    assert none is None


def test_candidates_have_their_bins_and_counts() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 3, 9):
        made = [candidate(size, [2, 5], rng=rng) for _ in range(50)]
        assert all(len(each) == size and set(each) <= {2, 5} for each in made)
