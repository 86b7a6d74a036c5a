"""How long records take to become cells, against the same group-by typed in DuckDB.

    python benchmarks/tabulation.py [--records 50000000] [--json results.json]

Both sides read the same Parquet file in this process, in turn, and the best of three runs
counts. The reference is the SQL a person would type, fetched as an Arrow table; ours also reads
the domain and puts every count into its cell. The rows that bound what a person contributes have
no target: that needs the rows of each person together, which a group-by does not. People have
three records on average: nearly all have fewer than 10, and more than half have more than 2.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from countwise.tables.domainfile import read_domain_file
from countwise.tables.tabulate import Tabulation, tabulate

Row = dict[str, object]
SHAPE = {"state": 50, "county": 20, "tract": 40, "race": 5}
BY = tuple(SHAPE)
TYPED = f"SELECT {', '.join(BY)}, count(*) AS n FROM '{{file}}' GROUP BY ALL"


def write_records(file: Path, size: int) -> None:
    """Records spread unevenly over the cells, labels as text, three a person on average."""
    columns = ", ".join(
        f"'{name} ' || (floor(random() * random() * {n}))::INT AS {name}"
        for name, n in SHAPE.items()
    )
    duckdb.sql(
        f"COPY (SELECT (random() * {size / 3})::BIGINT AS person, {columns} FROM range({size})) "
        f"TO '{file}' (FORMAT parquet)"
    )


def write_domain(file: Path) -> None:
    tables = (
        f"[columns.{name}]\nlevels = {json.dumps([f'{name} {i}' for i in range(n)])}\n"
        for name, n in SHAPE.items()
    )
    file.write_text("".join(tables))


def seconds(work: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The best of three runs of each, taken in turn."""
    best = [float("inf"), float("inf")]
    for _ in range(3):
        for side, each in enumerate((work, other)):
            start = time.perf_counter()
            each()
            best[side] = min(best[side], time.perf_counter() - start)
    return best[0], best[1]


def row(work: str, ours: float, theirs: float, target: str) -> Row:
    print(f"{work:56} {ours:8.2f} s  {theirs:8.2f} s  {ours / theirs:6.2f}×  {target}", flush=True)
    return {
        "work": work,
        "reference": "DuckDB",
        "ours_s": ours,
        "reference_s": theirs,
        "times_reference": ours / theirs,
        "target": target,
    }


def measured(folder: Path, size: int) -> list[Row]:
    records, declared = folder / "people.parquet", folder / "domain.toml"
    write_records(records, size)
    write_domain(declared)
    few, tenth = folder / "few.parquet", size // 10
    duckdb.sql(f"COPY (FROM '{records}' WHERE person % 10 = 0) TO '{few}' (FORMAT parquet)")

    def ours(file: Path, **how: object) -> Callable[[], object]:
        return lambda: tabulate(file, Tabulation(domain=read_domain_file(declared, by=BY), **how))

    def typed(file: Path) -> Callable[[], object]:
        return lambda: duckdb.sql(TYPED.format(file=file)).to_arrow_table()

    cells = read_domain_file(declared, by=BY).size
    work = f"{size:,} records to {cells:,} cells"
    found = [row(work, *seconds(ours(records), typed(records)), "≤ 1.3×")]
    for rows in (10, 2):
        bounded = ours(few, person="person", rows=rows)
        work = f"about {tenth:,} records, at most {rows} a person"
        found.append(row(work, *seconds(bounded, typed(few)), ""))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--json", type=Path, help="write the results here too")
    options = parser.parse_args()
    print(f"{'work':56} {'ours':>10}  {'DuckDB':>10}  {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), options.records)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
