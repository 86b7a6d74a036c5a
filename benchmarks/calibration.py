"""Whether 95% intervals cover 95%: every route, S = 2, 10, 50 and a three-level tree.

    python benchmarks/calibration.py [ROUTE …]

Intervals of whole numbers hold a little more than asked and say how much; coverage is compared
with that. One line a case, with the error (one standard error): about 0.15 points, of the slow
draws 0.3. Three quarters of an hour on one idle core, most of it draws and summed totals.
"""

import sys
from pathlib import Path
from time import perf_counter

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from worlds import coverage

WORLDS = {(2,): 2600, (10,): 520, (50,): 110, (3, 2, 3): 320}
TIMES = {"measurements": 4, "clipped": 4, "mode": 4, "summed": 4, "draw-2": 1, "draw-1": 1}


def main() -> None:
    for route in sys.argv[1:] or TIMES:
        for shape, few in WORLDS.items():
            start, worlds = perf_counter(), few * TIMES[route]
            found = coverage(route, shape, worlds)
            print(
                f"{route:12} {shape!s:10} worlds {worlds:5}  covers {100 * found.found:6.2f}%  "
                f"promises {100 * found.promised:6.2f}%  off {100 * found.off:.2f} points "
                f"± {100 * found.error:.2f}  ({perf_counter() - start:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
