"""The most probable combination of all counts, from the counts alone."""

from itertools import pairwise

import numpy as np
import pytest

from cases import flat, tree
from countwise.arrays import FloatArray, IntArray
from countwise.inference.combinations import joint_of
from countwise.inference.exact_posterior import ExactPosterior
from countwise.inference.local_search import climbed
from countwise.kernels.combination_weights import combination_logs
from countwise.kernels.coupled_mixture import StepLayout
from worlds import posterior, simulate


def combination_weights(
    rows: IntArray, pieces: list[FloatArray], lows: IntArray, components: IntArray, bounds: IntArray
) -> FloatArray:
    """What the kernel does, one row and one step after the other, without logarithms."""
    result = np.zeros(len(rows))
    for r, row in enumerate(rows):
        own = np.zeros(rows.shape[1])
        for first, last in pairwise(bounds):
            for q in range(first, last):
                at = row[components[q]] - lows[q]
                own[components[q]] = pieces[q][at] if 0 <= at < len(pieces[q]) else 0.0
            result[r] += own.prod()
    return result


def test_the_weight_of_combinations_is_that_of_its_twin() -> None:
    rng = np.random.default_rng(4)
    for size in (1, 2, 5):
        changes = rng.integers(0, 3, 12)
        components = np.concatenate([np.arange(size), rng.integers(0, size, changes.sum())])
        bounds = np.concatenate([[0], size + np.cumsum(np.concatenate([[0], changes]))])
        pieces = [rng.random(rng.integers(1, 7)) * (rng.random() < 0.9) for _ in components]
        lows = rng.integers(0, 4, len(components))
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in pieces])])
        rows = rng.integers(0, 9, (200, size))
        layout = StepLayout(offsets, lows, components, bounds)
        found = combination_logs(rows, np.concatenate(pieces), layout)
        expected = combination_weights(rows, pieces, lows, components, bounds)
        assert expected.any()
        np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12)


def log_weights(post: ExactPosterior, levels: tuple[IntArray, ...]) -> FloatArray:
    """log of the joint weight of combinations of all counts, one a row of every level."""
    solved, hierarchy = post.solved, post.hierarchy
    total = np.zeros(len(levels[0]))
    for level, offsets in enumerate(hierarchy.offsets):
        below = solved.ties.own(level + 1, 0, hierarchy.sizes[level + 1])
        for parent in range(hierarchy.sizes[level]):
            first, last = offsets[parent : parent + 2].tolist()
            own = solved.couplings[0] if level == 0 else solved.ties.own(level, parent, parent + 1)
            joint = joint_of(solved.ties, level, parent, below.part(first, last), own.one(0))
            total += joint.logs(levels[level + 1][:, first:last])
    return total


@pytest.mark.parametrize(
    ("route", "shape"),
    [
        ("mode", (40,)),
        ("mode", (3, 4, 12)),
        ("mode", (30, 5)),
        ("summed", (12,)),
        ("summed", (2, 3, 4)),
        ("draw-2", (30,)),
        ("draw-2", (4, 9)),
        ("draw-1", (3, 3)),
    ],
)
def test_no_neighbour_and_no_draw_is_more_probable(route: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng([len(route), *shape])
    hierarchy = flat(shape[0]) if len(shape) == 1 else tree(*shape)
    for _ in range(3 if route == "mode" else 1):
        post = posterior(route, simulate(hierarchy, rng), rng)
        assert isinstance(post, ExactPosterior)
        mode = post.joint_mode()
        best = log_weights(post, tuple(each[None] for each in mode))[0]
        for offsets, above, below in zip(hierarchy.offsets, mode, mode[1:], strict=False):
            np.testing.assert_array_equal(np.add.reduceat(below, offsets[:-1]), above)
        drawn = log_weights(post, post.draws(200, rng=rng).levels)
        assert drawn.max() < best + 1e-9
        one = np.eye(hierarchy.cells, dtype=np.int64)
        near = np.concatenate([one, -one, (one[:, None] - one).reshape(-1, hierarchy.cells)])
        cells = mode[-1] + near[rng.permutation(len(near))[:400]]
        levels = [cells[cells.min(axis=1) >= 0]]
        for offsets in reversed(hierarchy.offsets):
            levels.append(np.add.reduceat(levels[-1], offsets[:-1], axis=1))
        assert log_weights(post, tuple(reversed(levels))).max() < best + 1e-9


def test_hundreds_of_components_have_a_joint_mode() -> None:
    rng = np.random.default_rng(9)
    post = posterior("mode", simulate(flat(300), rng), rng)
    total, cells = post.joint_mode()
    assert cells.sum() == total[0]
    assert abs(int(total[0]) - post.summaries(0).mean[0]) < 5 * post.summaries(0).sd[0]


def test_listed_combinations_begin_with_the_joint_mode() -> None:
    """Also where the search from the most probable count of each ends too early."""
    rng = np.random.default_rng(7)
    for _ in range(5):
        post = posterior("mode", simulate(flat(40), rng), rng)
        best = post.top(3)
        assert best[0].counts == tuple(post.joint_mode()[-1].tolist())
        assert best[0].probability >= best[1].probability >= best[2].probability


def test_climbing_moves_many_units_at_once() -> None:
    """A sum far from where it begins is reached, and where children are many in few moves."""

    class Far:
        grid, log_mass, calls = 0, 0.0, 0

        def logs(self, rows: IntArray) -> FloatArray:
            self.calls += 1
            return -np.abs(rows - np.arange(64)).sum(axis=1).astype(np.float64)

    joint = Far()
    rows, logs = climbed(joint, np.arange(64)[::-1][None].copy(), free=False)
    np.testing.assert_array_equal(rows[0], np.arange(64))
    assert logs[0] == 0.0
    assert joint.calls < 400
