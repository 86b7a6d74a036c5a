"""The exact samplers: thresholds proven, law tested with power, randomness never shared."""

import multiprocessing
import secrets
import subprocess
import sys
import threading
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from countwise.errors import PlanError
from countwise.noise import entropy, opendp_backend, sampling
from countwise.noise.audit import SCALES, audit, p_value
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.laws import (
    DiscreteGaussian,
    Exact,
    Geometric,
    IntegerLaw,
    Laplace,
    RoundedLaplace,
)
from countwise.noise.sampling import sample, sample_laplace
from countwise.noise.thresholds import floor_scaled, rising_table, symmetric_table

KINDS = tuple(dict.fromkeys(each.law for each in MECHANISMS.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_draws_fit_their_law_and_no_other(kind: type[IntegerLaw]) -> None:
    """True scale accepted, 0.9 and 1.1 of it rejected at 1e-12, at six scales."""
    verdicts = list(audit((kind,), sampler=sample, draws=100_000))
    assert [verdict.law.scale for verdict in verdicts] == list(SCALES)
    assert all(verdict.passed for verdict in verdicts), verdicts


@pytest.mark.parametrize("kind", KINDS)
def test_opendp_agrees(kind: type[IntegerLaw]) -> None:
    for verdict in audit((kind,), sampler=opendp_backend.sample, draws=20_000):
        assert verdict.p_true > 1e-9, verdict


@pytest.mark.parametrize("scale", [200, 201, 5000, 3_000_000, 10**10])
@pytest.mark.parametrize("kind", [Geometric, RoundedLaplace])
def test_large_scales_are_put_together_exactly(kind: type[IntegerLaw], scale: int) -> None:
    draws = sample(kind(scale=Fraction(scale)), 200_000)
    assert p_value(kind(scale=Fraction(scale)), draws) > 1e-9
    assert p_value(kind(scale=Fraction(scale) * 9 / 10), draws) < 1e-12
    assert p_value(kind(scale=Fraction(scale) * 11 / 10), draws) < 1e-12


@pytest.mark.parametrize("scale", ["1/2", "3/2", "10", "5000"])
@pytest.mark.parametrize("kind", KINDS)
def test_refinement_is_forced_by_a_narrow_table(kind: type[IntegerLaw], scale: str) -> None:
    """With 16 bits many draws hit a threshold; the law must come out the same."""
    law = kind(scale=Fraction(scale))
    assert p_value(law, sample(law, 100_000, bits=16)) > 1e-9


def test_a_coarse_table_alone_would_be_wrong() -> None:
    """The 8-bit table without refinement fails the test that the refined draws pass."""
    law = Geometric(scale=Fraction(10))
    table = symmetric_table(law.cdf_ball, bits=8)
    draws = table.draw(100_000)
    assert p_value(law, draws) > 1e-9
    words = entropy.words(100_000) >> np.uint64(56)
    careless = table.low + np.searchsorted(table.thresholds, words, side="right")
    assert p_value(law, careless) < 1e-12


@pytest.mark.parametrize("scale", ["1/2", "1", "7/3", "10"])
def test_thresholds_are_exact_floors(scale: str) -> None:
    """t ≤ F(k)·2^64 < t+1, with F from another library at 60 digits."""
    law = Geometric(scale=Fraction(scale))
    table = symmetric_table(law.cdf_ball)
    with mpmath.workdps(60):
        alpha = mpmath.exp(-mpmath.mpf(law.scale.denominator) / law.scale.numerator)
        for i in range(0, len(table.thresholds), 3):
            k = table.low + i
            below = alpha ** (-k) / (1 + alpha) if k < 0 else 1 - alpha ** (k + 1) / (1 + alpha)
            scaled = below * mpmath.mpf(2) ** 64
            assert int(table.thresholds[i]) <= scaled < int(table.thresholds[i]) + 1
    assert table.thresholds[0] == 0
    assert table.thresholds[-1] == 2**64 - 1


def test_gaussian_thresholds_are_exact_floors() -> None:
    sigma2 = Fraction(7, 3) ** 2
    law = DiscreteGaussian(scale=Fraction(7, 3))
    with mpmath.workdps(60):
        rate = mpmath.mpf(sigma2.denominator) / (2 * sigma2.numerator)
        weights = {j: mpmath.exp(-rate * j * j) for j in range(-80, 81)}
        total = mpmath.fsum(weights.values())
        for k in (-20, -7, -1, 0, 3, 15):
            scaled = (
                mpmath.fsum(weights[j] for j in range(-80, k + 1)) / total * mpmath.mpf(2) ** 64
            )
            assert floor_scaled(law.cdf_ball, k, 64) == int(mpmath.floor(scaled))


def test_a_finite_table_never_leaves_its_range() -> None:
    law = Geometric(scale=Fraction(1000))
    draws = rising_table(law.cdf_ball, -1, most=1, bits=4).draw(20_000)
    assert set(np.unique(draws)) == {-1, 0, 1}


def test_laplace_noise_lies_on_its_grid_and_fits() -> None:
    law = Laplace(scale=Fraction(2))
    draws = sample_laplace(law, 200_000)
    assert (draws * 2**24 == np.rint(draws * 2**24)).all()
    assert kstest(draws, law.cdf).pvalue > 1e-9
    assert kstest(draws, Laplace(scale=Fraction(18, 10)).cdf).pvalue < 1e-12


def test_exact_counts_get_no_noise_from_either_backend() -> None:
    assert not sample(Exact(), 5).any()
    assert not opendp_backend.sample(Exact(), 5).any()


def test_a_gaussian_too_wide_for_a_table_is_refused() -> None:
    with pytest.raises(PlanError, match="--noise opendp"):
        sample(DiscreteGaussian(scale=Fraction(10**6)), 1)


def _child(pipe: object) -> None:
    pipe.send(entropy.words(4).tolist())  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_and_threads_do_not_share_noise() -> None:
    entropy.words(1)
    context = multiprocessing.get_context("fork")
    drawn = []
    for _ in range(3):
        here, there = context.Pipe()
        process = context.Process(target=_child, args=(there,))
        process.start()
        drawn.append(tuple(here.recv()))
        process.join()
    results: list[tuple[int, ...]] = []
    threads = [
        threading.Thread(target=lambda: results.append(tuple(entropy.words(4).tolist())))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn += [*results, tuple(entropy.words(4).tolist())]
    assert len({word for words in drawn for word in words}) == 4 * len(drawn)


def test_words_are_uniform_across_block_borders() -> None:
    words = entropy.words((1 << 17) * 2 + 3)
    bits = np.unpackbits(words.view(np.uint8))
    assert abs(bits.mean() - 0.5) < 6 * 0.5 / np.sqrt(len(bits))
    assert len(np.unique(words)) == len(words)


def test_a_fork_that_python_was_not_told_of_shares_no_noise() -> None:
    """The C library's own fork, as an embedder may use it, right after noise was drawn."""
    code = """
import ctypes, os, sys
from countwise.noise import entropy
entropy.words(8)
reading, writing = os.pipe()
if ctypes.CDLL(None).fork() == 0:
    os.write(writing, entropy.words(8).tobytes())
    os._exit(0)
print(entropy.words(8).tobytes() == os.read(reading, 64))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_block_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a machine that is started twice from one snapshot draws new ones."""
    keys: list[bytes] = []

    def key(size: int) -> bytes:
        keys.append(secrets.token_bytes(size))
        return keys[-1]

    monkeypatch.setattr(entropy.os, "urandom", key)
    entropy.words(2 * entropy.BLOCK // 8 + 1)
    entropy.word()
    assert len(set(keys)) == len(keys) == 2 * 4


@pytest.mark.parametrize("kind", [Geometric, RoundedLaplace])
def test_wide_noise_is_nothing_as_often_as_it_should_be(kind: type[IntegerLaw]) -> None:
    """Bins of wide laws hold many values; the one in the middle is looked at by itself."""
    law, size = kind(scale=Fraction(201)), 400_000
    zeros = int((sample(law, size) == 0).sum())
    assert binomtest(zeros, size, float(law.pmf(0))).pvalue > 1e-9


def test_digits_are_put_together_in_their_base(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = {Fraction(5000): 7, Fraction(5000, 4096): 3}
    monkeypatch.setattr(
        sampling,
        "_digit",
        lambda scale, _: SimpleNamespace(draw=lambda size: np.full(size, digits[scale])),
    )
    assert sampling.sample_magnitude(Fraction(5000), 2).tolist() == [7 + 3 * 4096] * 2
