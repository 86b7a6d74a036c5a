"""Tables and releases that are handled in pieces, for the commands that meet them."""

from pathlib import Path
from typing import Any

from countwise.cli.console import out, print_json, stages
from countwise.cli.tabulate_command import plan_tabulation
from countwise.errors import InputError
from countwise.inference.subtree_posteriors import infer_by_pieces, write_one
from countwise.release.count_sources import (
    CountSource,
    HeldSource,
    record_source,
    table_source,
)
from countwise.release.execution import in_threads
from countwise.release.folder import whole
from countwise.release.large_release import LargeRelease
from countwise.release.pipeline import MOST_WHOLE, goes_by_pieces, publish
from countwise.release.plan import Plan
from countwise.release.publication import Publication
from countwise.release.spark import OnSpark, spark_record_source
from countwise.sumproduct.priors import read_prior
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.spark_session import is_spark, session


def large_source(
    plan: Plan,
    table: Path | None,
    records: str | None,
    *,
    count: str,
    domain: Path | None,
    engine: str,
    piece: int,
    plain: bool,
    no_totals: bool = False,
    reading: Reading = PLAIN,
) -> CountSource | None:
    """The input of a release in pieces; None where the table is small, or needs to be whole.

    A method that looks at all cells at once is used in memory while the table fits there.
    """
    if plan.across:
        if is_spark(engine) and records is None:
            raise InputError(
                "Spark counts records of tables that cross, and does not release a table of cells, "
                "which is held whole. To fix, leave --engine out, or give the records."
            )
        return None
    source = None
    if table is not None and plain:
        source = table_source(
            table, by=plan.by, count=count, domain=domain, most=piece, no_totals=no_totals
        )
    elif table is None:
        tabulation = plan_tabulation(plan, domain, no_totals=no_totals, reading=reading)
        assert domain is not None
        of = spark_record_source if is_spark(engine) else record_source
        source = of(str(records), tabulation, domain=domain, engine=engine, most=piece)
    if source is None or (source.cut.total <= MOST_WHOLE and not goes_by_pieces(plan)):
        return None
    return source


def publish_it(
    source: CountSource | HeldSource, plan: Plan, folder: Path, *, engine: str, **how: Any
) -> Publication:
    """Release to a folder, on Spark where that is the engine, with a bar for each stage."""
    on_spark = is_spark(engine) and not isinstance(source, HeldSource)
    runner = OnSpark(session=session(engine)) if on_spark else in_threads
    with stages() as tell:
        return publish(source, plan, folder, runner=runner, data_set=on_spark, tell=tell, **how)


def infer_large(
    large: LargeRelease,
    file: Path | None,
    others: list[str],
    prior: str,
    level: float,
    interval: str,
    engine: str,
    overwrite: bool,
    json: bool,
) -> None:
    """Write the posterior of a large release; from Spark a Parquet data set."""
    nodes = sum(large.sizes)
    if others:
        raise InputError(
            f"a release of {nodes:,} counts is inferred a subtree at a time, and "
            f"{', '.join(others)} needs all of it. To fix, ask for --out alone, or raise --piece "
            "if memory can hold the release."
        )
    if file is None:
        raise InputError(
            f"the posterior of {nodes:,} counts is too long to print. To fix, name a file for it: "
            "--out posterior.parquet"
        )
    if engine and not is_spark(engine):
        raise InputError(f"--engine is spark or spark://host:port here, got {engine!r}.")
    runner = OnSpark(session=session(engine)) if engine else in_threads
    with whole(file.absolute(), overwrite=overwrite) as partial, stages() as report:
        parts = partial.with_name("parts")
        parts.mkdir()
        files = infer_by_pieces(
            large,
            parts,
            prior=read_prior(prior),
            probability=level,
            interval=interval,
            runner=runner,
            report=report,
        )
        if engine:
            partial.mkdir()
            for path in files:
                path.rename(partial / path.name)
        else:
            write_one(files, partial)
    if json:
        print_json({"file": str(file), "nodes": nodes, "pieces": len(large.cut)})
    else:
        out.print(f"The posterior of {nodes:,} counts was written to {file}.")
