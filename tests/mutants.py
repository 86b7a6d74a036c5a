"""Faults put into the source one at a time, to see that a test notices each of them.

Usage: python tests/mutants.py [NAME …] [--list] [--workers 2]

Every mutant is one change of one file, which would break the privacy promise or what is said of
it. In a copy of the project the change is made and the tests that own the code are run; they must
fail. First they are run without any change, where they must pass. Not part of the ordinary run,
which only checks that every mutant still fits the source (test_mutants.py).
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", ".*_cache", "site", "build", "node_modules"
)
PASSED, FAILED, NOT_COLLECTED = 0, 1, 2
SECONDS = 900
SERVER = get_context("forkserver")
LIBRARIES = (
    "numpy",
    "scipy.stats",
    "scipy.optimize",
    "numba",
    "polars",
    "pyarrow.parquet",
    "duckdb",
    "ibis",
    "jinja2",
    "flint",
    "sqlalchemy",
    "openpyxl",
    "pandas",
    "typer.testing",
    "pytest",
    "dp_accounting.pld.privacy_loss_distribution",
    "opendp.prelude",
)

BOUNDARY = "tests/test_release_boundary.py"
LEVELS = f"{BOUNDARY}::test_every_level_has_the_noise_of_its_loss"


def levels(mechanism: str, *relations: str, backend: str = "exact") -> tuple[str, ...]:
    """The boundary's test of the noise of every level, under some relations."""
    return tuple(f"{LEVELS}[{mechanism}-{backend}-{each}]" for each in relations)


ONE, THREE = "add-remove-1", "add-remove-3"
OTHER, OTHER_THREE = "replace-one-1", "replace-one-3"
JOINT = (f"{BOUNDARY}::test_joint_noise_has_its_law",)
EXACT = (
    f"{BOUNDARY}::test_a_single_person_where_nobody_can_be_is_seen",
    f"{BOUNDARY}::test_exact_counts_come_out_as_they_are_and_the_others_with_their_noise[geometric]",
)
PIECES = (
    f"{BOUNDARY}::test_a_second_attempt_at_a_piece_keeps_the_noise_of_the_first",
    f"{BOUNDARY}::test_attempts_that_do_not_know_of_each_other_leave_one_noise",
)
TABLES = "tests/test_crossed_release.py::test"
CROSSED = (
    f"{TABLES}_every_measured_table_has_the_noise_of_its_loss[geometric-{ONE}]",
    f"{TABLES}_every_measured_table_has_the_noise_of_its_loss[gaussian-{THREE}]",
)
CROSSED_EXACT = (
    f"{TABLES}_counts_beside_exact_ones_keep_their_noise",
    f"{TABLES}_exact_tables_and_zeros_are_kept_and_read_back",
    f"{TABLES}_a_person_where_nobody_can_be_is_seen",
    f"{TABLES}_people_who_move_below_exact_tables_cost_what_is_promised",
)
FRESH = (f"{BOUNDARY}::test_no_two_calls_and_no_two_counts_share_their_noise",)
LOSSES = ("tests/test_loss_distribution.py",)
PROMISE = ("tests/test_promise.py",)
SAMPLING = ("tests/test_sampling.py",)
BLACKBOX = (
    "tests/test_blackbox.py::test_the_bound_is_that_of_clopper_and_pearson",
    "tests/test_blackbox.py::test_the_tables_are_the_ones_that_noise_hides_least",
    "tests/test_blackbox.py::test_low_statistics_speak_for_the_second_table",
    "tests/test_blackbox.py::test_tables_that_are_not_neighbours_are_refused",
)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault: in a file or folder below src/countwise, one text in place of another."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def place(self, root: Path) -> Path:
        """The one file it is in; refused unless there is exactly one place in all of them."""
        within = root / "src" / "countwise" / self.file
        files = sorted(within.rglob("*.py")) if within.is_dir() else [within]
        found = {path: path.read_text(encoding="utf-8").count(self.old) for path in files}
        if sum(found.values()) != 1:
            raise LookupError(
                f"mutant {self.name!r}: {self.file} has {sum(found.values())} places with "
                f"{self.old!r}, not 1"
            )
        return next(path for path, times in found.items() if times)

    def applied(self, root: Path) -> tuple[Path, str, str]:
        """The file, its text as it is, and its text with the fault."""
        path = self.place(root)
        source = path.read_text(encoding="utf-8")
        return path, source, source.replace(self.old, self.new)


def _mutants(file: str, tests: tuple[str, ...], *changes: tuple[str, str, str]) -> Iterator[Mutant]:
    for name, old, new in changes:
        yield Mutant(name=name, file=file, old=old, new=new, tests=tests)


SCALE = "return kind(scale=level_sensitivity(neighbours, rows=plan.rows, nodes=nodes) / loss)"
SIGMA = "return kind(scale=gaussian_scale(loss, squared_sensitivity=reach))"
RELEASE = (
    *_mutants(
        "release/noise_budget.py",
        levels("geometric", ONE),
        ("half the scale of ε", SCALE, SCALE.replace("/ loss", "/ (2 * loss)")),
        ("twice the scale of ε", SCALE, SCALE.replace("/ loss", "/ loss * 2")),
    ),
    *_mutants(
        "release/noise_budget.py",
        levels("gaussian", ONE),
        ("half the σ of ρ", SIGMA, SIGMA.replace("reach))", "reach) / 2)")),
        ("twice the σ of ρ", SIGMA, SIGMA.replace("reach))", "reach) * 2)")),
    ),
    *_mutants(
        "noise/count_noise.py",
        levels("laplace", ONE),
        (
            "geometric noise in place of Laplace",
            "law=RoundedLaplace,",
            "law=Geometric,",
        ),
    ),
    *_mutants(
        "noise/sensitivity.py",
        (*levels("geometric", THREE), *levels("gaussian", THREE)),
        ("rows of a person dropped", "        return (rows,)\n", "        return (1,)\n"),
        ("twice the rows of a person", "        return (rows,)\n", "        return (2 * rows,)\n"),
    ),
    *_mutants(
        "noise/sensitivity.py",
        (*levels("geometric", OTHER, OTHER_THREE), *levels("gaussian", OTHER)),
        ("a replaced person moves half as far", "else (rows, rows)", "else (rows,)"),
        ("a replaced person moves twice as far", "else (rows, rows)", "else (rows, rows) * 2"),
        ("a replaced person moves the total by all rows", "(rows - 1,) if", "(rows,) if"),
        ("a replaced person leaves the total", "(rows - 1,) if", "(0,) if"),
    ),
    *_mutants(
        "noise/sensitivity.py",
        levels("gaussian", THREE),
        ("lengths not squared", "sum(move**2 for", "sum(move for"),
        ("lengths doubled, then squared", "sum(move**2 for", "sum((2 * move)**2 for"),
    ),
    *_mutants(
        "release/measure.py",
        (*levels("geometric", ONE), *levels("gaussian", THREE)),
        (
            "levels' laws the other way round",
            "zip(budget.laws, hierarchy.sizes",
            "zip(budget.laws[::-1], hierarchy.sizes",
        ),
        (
            "the root's law for all levels",
            "zip(budget.laws, hierarchy.sizes",
            "zip([budget.laws[0]] * len(budget.laws), hierarchy.sizes",
        ),
        ("noise taken off, not put on", "frozen(counts + z)", "frozen(counts - counts + z)"),
        ("noise rounded away from odd", "frozen(counts + z)", "frozen(counts + z // 2 * 2)"),
    ),
    *_mutants(
        "release/measure.py",
        FRESH,
        ("one noise for all counts of a level", "frozen(counts + z)", "frozen(counts + z[0])"),
    ),
    *_mutants(
        "release/measure.py",
        EXACT,
        (
            "people in zeros not looked for",
            "known.refuse_people_in_zeros(hierarchy, cells)",
            "pass",
        ),
        (
            "a level with an exact count bare",
            "np.where(exact[level], 0,",
            "np.where(exact[level].any(), 0,",
        ),
        ("exact counts noisy", "np.where(exact[level], 0,", "np.where(exact[level], 1,"),
    ),
    *_mutants(
        "tables/invariants.py",
        EXACT,
        ("one person in a zero unseen", "(cells != 0)", "(cells > 1)"),
        (
            "only the first zero looked at",
            "wrong = self.zeros[-1] & (cells != 0)",
            "wrong = (self.zeros[-1] & (cells != 0))[:1]",
        ),
    ),
    *_mutants(
        "release/measure.py",
        CROSSED,
        ("tables that cross bare", "true + drawn if known", "true if known"),
        (
            "half the noise of tables that cross",
            "true + drawn if known",
            "true + drawn // 2 if known",
        ),
        (
            "the first table's law for all",
            "SAMPLERS[noise](each.law,",
            "SAMPLERS[noise](budget.laws[0],",
        ),
    ),
    *_mutants(
        "release/measure.py",
        CROSSED_EXACT,
        (
            "people in zeros of tables that cross",
            "refuse_people(workload, cells, budget.invariants)",
            "pass",
        ),
        ("exact tables that cross noisy", "np.where(known, 0, drawn)", "drawn"),
        (
            "a table with a zero bare",
            "np.where(known, 0, drawn)",
            "np.where(known.any(), 0, drawn)",
        ),
    ),
    *_mutants(
        "noise/joint.py",
        JOINT,
        ("joint noise kept below, not up to", "np.abs(total) <= self", "np.abs(total) < self"),
        (
            "joint: half the scale above the cells",
            "self.magnitude(scale, size) if",
            "self.magnitude(scale / 2, size) if",
        ),
        (
            "joint: twice the scale above the cells",
            "self.magnitude(scale, size) if",
            "self.magnitude(scale * 2, size) if",
        ),
        (
            "joint: the root's law in the cells",
            "self.sample(self.laws[-1],",
            "self.sample(self.laws[0],",
        ),
        (
            "joint: the cells' scale above them",
            "scale, size = self.laws[level].scale,",
            "scale, size = self.laws[-1].scale,",
        ),
    ),
    *_mutants(
        "noise/opendp_backend.py",
        (
            *levels("geometric", ONE, backend="opendp"),
            *levels("gaussian", ONE, backend="opendp"),
        ),
        ("OpenDP at half the scale", "nextafter(float(law.scale), inf)", "float(law.scale) / 2"),
        (
            "OpenDP at nine tenths of the scale",
            "nextafter(float(law.scale), inf)",
            "0.9 * float(law.scale)",
        ),
    ),
    *_mutants(
        "release/checkpoints.py",
        PIECES,
        ("a second attempt overwrites", "os.link(partial, ", "shutil.copyfile(partial, "),
    ),
    *_mutants(
        "release/pipeline.py",
        (
            "tests/test_pipeline.py::test_noise_that_was_drawn_in_memory_uses_its_charge_up",
            "tests/test_large_release.py::test_a_run_that_goes_on_forgets_the_key_of_bounded_rows",
        ),
        (
            "noise in memory that its charge outlives",
            "        staging.drawing()\n        return release(",
            "        return release(",
        ),
        ("the key of bounded rows kept", 'staging.forget("person_key")', "pass"),
    ),
)

SAMPLERS = (
    *_mutants(
        "noise/laws.py",
        (*levels("geometric", ONE), *levels("laplace", ONE), *levels("gaussian", ONE)),
        (
            "geometric law off by one",
            "return (step * -k).exp() / (1 + step.exp())",
            "return (step * (1 - k)).exp() / (1 + step.exp())",
        ),
        (
            "Laplace rounded at a third",
            "upper = (ball(-(abs(k + Fraction(1, 2))) / self.scale)).exp() / 2",
            "upper = (ball(-(abs(k + Fraction(1, 3))) / self.scale)).exp() / 2",
        ),
        (
            "Gaussian variance halved",
            "rate = ball(1 / (2 * scale * scale))",
            "rate = ball(1 / (scale * scale))",
        ),
    ),
    *_mutants(
        "noise/laws.py",
        ("tests/test_sampling.py::test_wide_noise_is_nothing_as_often_as_it_should_be",),
        (
            "upper half of the geometric law off by one",
            "return 1 - (step * (k + 1)).exp() / (1 + step.exp())",
            "return 1 - (step * (k + 2)).exp() / (1 + step.exp())",
        ),
    ),
    *_mutants(
        "noise/sampling.py",
        SAMPLING,
        ("wide noise one short", "noise[moved] *= 1 + sample", "noise[moved] *= sample"),
        ("digits in the wrong base", "low + BASE * sample", "low + (BASE - 1) * sample"),
        (
            "magnitudes off by one",
            "1 - ball(step * (d + 1)).exp(), 0",
            "1 - ball(step * (d + 2)).exp(), 0",
        ),
        ("digits not scaled down", "scale / BASE, size", "scale / (2 * BASE), size"),
    ),
    *_mutants(
        "noise/thresholds.py",
        SAMPLING,
        ("thresholds one too high", "return int(floor)", "return int(floor) + 1"),
        ("the upper half one too low", "_top(bits) - value for", "_top(bits) - 1 - value for"),
        (
            "a hit goes up unasked",
            "not number.below(self.cdf, k):",
            "not number.below(self.cdf, k + 1):",
        ),
        ("late digits are zeros", "<< BITS | entropy.word()", "<< BITS | 0"),
        (
            "late digits of the same width",
            "            self.bits += BITS\n",
            "            self.bits += 1\n",
        ),
    ),
    *_mutants(
        "noise/entropy.py",
        SAMPLING,
        (
            "one key for all blocks and all forks",
            "def _fresh() -> CipherContext:",
            '@__import__("functools").cache\ndef _fresh() -> CipherContext:',
        ),
        (
            "a key that all know",
            "Cipher(AES(os.urandom(32)), CTR(os.urandom(16)))",
            "Cipher(AES(bytes(32)), CTR(bytes(16)))",
        ),
    ),
)

ACCOUNTS = (
    *_mutants(
        "noise/zcdp.py",
        (
            "tests/test_plan.py::test_gaussian_losses_are_in_rho",
            "tests/test_plan.py::test_rho_in_epsilon_and_delta",
        ),
        ("σ rounded down", "while root * root < square:", "while root * root > square:"),
        ("σ of twice the ρ", "squared_sensitivity / (2 * rho)", "squared_sensitivity / (4 * rho)"),
        ("bound of half the ρ", "order * loss + log1p", "order * loss / 2 + log1p"),
    ),
    *_mutants(
        "noise/lossdistribution.py",
        LOSSES,
        (
            "losses rounded down",
            "above = np.expm1((below - loss) * step) / np.expm1(-step)",
            "above = 0 * loss",
        ),
        ("half of the shift lost", "(noise + move / 2)", "noise"),
        (
            "losses at half",
            "* (move / width) / width / step",
            "* (move / width) / width / step / 2",
        ),
        ("one count of many", "rfft(laws[part][1], size) ** times", "rfft(laws[part][1], size)"),
        ("the lower end of the bisection", "    return high\n", "    return low / 2\n"),
    ),
    *_mutants(
        "release/budget.py",
        (*LOSSES, *PROMISE),
        ("a moved person counted once", "times = 2 if twice else 1", "times = 1"),
        (
            "a level's loss forgotten",
            "sum((level.loss for level in self.levels)",
            "sum((level.loss for level in self.levels[1:])",
        ),
    ),
    *_mutants(
        "release/promise.py",
        PROMISE,
        ("exact counts without their factor", "budget.loss * (2 if twice else 1)", "budget.loss"),
        ("one exact count ignored", "return self.exact > 0", "return self.exact > 1"),
        (
            "an exact total hides who is there",
            "any(bool(each.all()) for each in known.exact)",
            "False",
        ),
        ("zeros counted as exact", "[e & ~z for e, z in", "[e for e, z in"),
    ),
    *_mutants(
        "release/blackbox.py",
        BLACKBOX,
        ("a bound on one side only", "risk = (1 - confidence) / 2", "risk = 0.4"),
        (
            "hits not bounded from above",
            "betaincinv(other + 1,",
            "betaincinv(np.maximum(other, 1),",
        ),
        (
            "low statistics for the first table",
            "_least_loss(low[1], low[0],",
            "_least_loss(low[0], low[1],",
        ),
    ),
    *_mutants(
        "release/neighbours.py",
        BLACKBOX,
        (
            "a changed exact count let through",
            "_refuse_changed_exact(hierarchy, budget, change)\n    gone",
            "gone",
        ),
        (
            "two people taken for one",
            "fits = 0 < max(gone, come) <= rows",
            "fits = 0 < max(gone, come) <= 2 * rows",
        ),
    ),
)

RECORDS = (
    *_mutants(
        "tables/contribution.py",
        ("tests/test_tabulate.py",),
        ("one row too many a person", "ranked[RANK] < most)", "ranked[RANK] <= most)"),
        ("one row over the bound unseen", "sizes[RANK] > most)", "sizes[RANK] > most + 1)"),
    ),
    *_mutants(
        "tables/confidential.py",
        ("tests/test_tables.py",),
        (
            "true counts can be pickled",
            "    def __reduce__(self) -> NoReturn:",
            "    def _reduce(self) -> NoReturn:",
        ),
    ),
)

LEDGER = (
    *_mutants(
        "ledger",
        ("tests/test_ledger.py::test_micro_rounds_up",),
        (
            "a charge rounded down",
            "return -(-exact(epsilon) * MICRO // 1)",
            "return int(exact(epsilon) * MICRO // 1)",
        ),
    ),
    *_mutants(
        "ledger",
        ("tests/test_ledger.py",),
        (
            "entries not chained",
            '"previous": last.hash if last else START',
            '"previous": START',
        ),
    ),
    *_mutants(
        "ledger/prices.py",
        ("tests/test_prices.py",),
        (
            "who moves charged as who comes",
            '("add-remove", "replace-one"): 2,',
            '("add-remove", "replace-one"): 1,',
        ),
        (
            "any change charged as coming",
            '("add-remove", "any-change"): 2,',
            '("add-remove", "any-change"): 1,',
        ),
    ),
    *_mutants(
        "ledger/prices.py",
        ("tests/test_prices.py", "tests/test_charging.py"),
        (
            "exact counts priced where people come and go",
            'if loss.exact and terms.neighbours != "replace-one":',
            "if loss.exact and not terms.neighbours:",
        ),
        (
            "rows taken on trust",
            "and not loss.bounded and loss.rows < terms.rows",
            "and not loss.bounded and loss.rows < 1",
        ),
        ("a pure loss at a quarter of its square", "epsilon**2 / 2", "epsilon**2 / 4"),
    ),
    *_mutants(
        "ledger/ledger.py",
        ("tests/test_ledger.py::test_all_caps_or_none",),
        ("a cap that is never reached", "not balance.affords(amount)", "not balance.affords"),
    ),
    *_mutants(
        "release/payment.py",
        ("tests/test_charging.py::test_in_pieces_what_is_refused_after_noise_stays_spent",),
        (
            "a charge kept for the next run after noise",
            "if payment.purpose and not staging.drawn:",
            "if payment.purpose:",
        ),
    ),
    *_mutants(
        "release/checkpoints.py",
        ("tests/test_charging.py::test_a_killed_run_does_not_pay_for_the_next",),
        (
            "a killed run pays for the next",
            'if not found.get("lasting", True):\n            return {}',
            'if not found.get("lasting", True):\n            return {"charge": found["charge"]}',
        ),
    ),
    *_mutants(
        "front_door/charging.py",
        ("tests/test_charging.py::test_a_charge_by_a_name_is_made_once",),
        ("a run that pays nothing", "if book.state(charge) is None:", 'if charge == "":'),
    ),
    *_mutants(
        "server/jobs.py",
        (
            "tests/test_server_jobs.py::test_a_worker_that_comes_back_from_the_dead",
            "tests/test_server_jobs.py::test_lost_too_often_is_burnt",
        ),
        (
            "a worker that lost its claim stores",
            "        if not _mine(book, work):\n            return False",
            "        if _mine(book, work) is None:\n            return False",
        ),
        (
            "an answer tried once too often",
            "row.attempts >= attempts",
            "row.attempts > attempts",
        ),
    ),
)

CLAIMS = ("tests/test_verification_boundary.py",)
LATTICE = "law = Geometric(scale=2 / epsilon)"
LAPLACE = "Laplace(scale=2 / epsilon), len"
VERIFICATION = (
    *_mutants(
        "verification/outcome_noise.py",
        CLAIMS,
        ("lattice and binary noise at 1/ε", LATTICE, LATTICE.replace("2 /", "1 /")),
        ("lattice and binary noise at 4/ε", LATTICE, LATTICE.replace("2 /", "4 /")),
        ("Laplace noise of claims at 1/ε", LAPLACE, LAPLACE.replace("2 /", "1 /")),
        ("Laplace noise of claims at 4/ε", LAPLACE, LAPLACE.replace("2 /", "4 /")),
        ("lattice noise that need not add up", ".sum(axis=1) == 0)", ".sum(axis=1) >= 0)"),
        ("errors left out of binary", "counts[1:].sum()", "counts[1]"),
    ),
    *_mutants(
        "verification/partitions.py",
        ("tests/test_verification_fits.py",),
        ("one key for all partitions", "return os.urandom(KEY_BYTES)", "return bytes(KEY_BYTES)"),
    ),
)

MUTANTS: tuple[Mutant, ...] = (
    *RELEASE,
    *SAMPLERS,
    *ACCOUNTS,
    *RECORDS,
    *LEDGER,
    *VERIFICATION,
)


def passing(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    """How pytest ends in a copy of the project, and what it said first of a failure.

    The process is forked from one that has imported the libraries, and not yet the project.
    """
    log = folder / "log.txt"
    child = SERVER.Process(target=_pytest, args=(folder, tests, log))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        return FAILED, f"no end after {SECONDS} s"
    text = log.read_text(encoding="utf-8", errors="replace")
    said = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return child.exitcode or PASSED, (said or [text[-300:]])[0]


def _pytest(folder: Path, tests: Sequence[str], log: Path) -> None:
    """Run tests of a copy, in a process of their own."""
    os.chdir(folder)
    sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    with log.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    import pytest

    os._exit(int(pytest.main(["-x", "-p", "no:cacheprovider", *tests])))


def verdict(mutant: Mutant, folder: Path) -> tuple[bool, str]:
    """Whether a test noticed, and which; the copy is then as it was."""
    path, source, changed = mutant.applied(folder)
    path.write_text(changed, encoding="utf-8")
    try:
        code, said = passing(folder, mutant.tests)
    finally:
        path.write_text(source, encoding="utf-8")
    if code not in (PASSED, FAILED, NOT_COLLECTED):
        raise SystemExit(f"the tests of mutant {mutant.name!r} could not be run: {said}")
    return code != PASSED, said


def run(mutants: Sequence[Mutant], workers: int, *, unchanged: bool) -> int:
    """All of them, a row each as they end; the number that no test noticed."""
    survivors = 0
    SERVER.set_forkserver_preload(list(LIBRARIES))
    with TemporaryDirectory(prefix="mutants-") as root:
        folders: Queue[Path] = Queue()
        for worker in range(workers):
            folder = Path(root) / f"copy{worker}"
            shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
            folders.put(folder)
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        code, said = passing(Path(root) / "copy0", tests) if unchanged else (PASSED, "")
        if code != PASSED:
            raise SystemExit(f"the tests do not pass as they are: {said}")

        def one(mutant: Mutant) -> tuple[Mutant, bool, str, float]:
            folder, begun = folders.get(), time.monotonic()
            try:
                died, said = verdict(mutant, folder)
            finally:
                folders.put(folder)
            return mutant, died, said, time.monotonic() - begun

        with ThreadPoolExecutor(workers) as pool:
            for mutant, died, said, seconds in pool.map(one, mutants):
                survivors += not died
                state = "died" if died else "SURVIVED"
                print(
                    f"{state:9} {seconds:5.0f} s  {mutant.file:32} {mutant.name:45} {said}",
                    flush=True,
                )
    print(f"{len(mutants)} mutants, {survivors} of which survived")
    return survivors


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="Mutants to run (default: all).")
    parser.add_argument("--list", action="store_true", help="Show the mutants and stop.")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--known-to-pass", action="store_true", help="Do not run the tests without a fault first."
    )
    given = parser.parse_args()
    chosen = [each for each in MUTANTS if not given.names or each.name in given.names]
    if given.list:
        for each in chosen:
            print(f"{each.file:32} {each.name}")
    elif not chosen or run(chosen, given.workers, unchanged=not given.known_to_pass):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
