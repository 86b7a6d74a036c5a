"""Whether 95% intervals cover 95%: every route, S = 2, 10, 50, a three-level tree, small counts.

    python benchmarks/calibration.py [--times K] [ROUTE …]

Intervals of whole numbers hold a little more than asked and say how much; coverage is compared
with that. One line a case, the error (one standard error) in points beside it, is about a
third of a point; K times as many worlds lower it. About twenty minutes on one idle core.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from worlds import ROUTES, SETTINGS, SPARSE_WORLDS, WORLDS, coverage


def main() -> None:
    asked = ArgumentParser(description=__doc__)
    asked.add_argument("--times", type=int, default=1)
    asked.add_argument("routes", nargs="*", metavar="ROUTE")
    chosen = asked.parse_args()
    cases = [("plain", shape, few) for shape, few in WORLDS.items()]
    for setting in ("skewed", "sparse"):
        cases += [(setting, shape, 4 * few) for shape, few in SPARSE_WORLDS.items()]
    for route in chosen.routes or ROUTES:
        for setting, shape, few in cases:
            start, worlds = perf_counter(), few * chosen.times
            found = coverage(route, shape, worlds, SETTINGS[setting])
            print(
                f"{route:12} {setting:6} {shape!s:10} worlds {worlds:5}  "
                f"covers {100 * found.found:6.2f}%  "
                f"promises {100 * found.promised:6.2f}%  off {100 * found.more:+.2f} points "
                f"± {100 * found.error:.2f}  ({perf_counter() - start:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
