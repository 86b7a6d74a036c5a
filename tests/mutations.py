"""Small confidential files of every kind that is read, and what accidents make of them.

True counts begin with 31337 and cells of records with Zq7, and nothing else in these files, their
names or the commands has either. So whatever shows one of the two shows what it must not.
"""

import csv
import io
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import polars as pl

from countwise.front_door.ledger_functions import ledger_at
from countwise.ledger.prices import MICRO, Terms

COUNT, CELL = "31337", "Zq7"
EPSILON = "0.01"
FAR = 10**9
"""Added to what is measured, so that no released count is a true one by chance."""

REGIONS, COUNTIES, KINDS = ("North", "South"), ("Ash", "Bay", "Cole"), ("f", "m")
Random = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A file as it should be, the public files beside it, and the commands that read it.

    In a command FILE stands for the file, as a word or at the end of one. `labels` are the columns
    whose content the user declares public where no domain is given; with `wide` the names of the
    other columns are too.
    """

    name: str
    file: str
    content: bytes
    commands: tuple[tuple[str, ...], ...]
    beside: dict[str, str | bytes] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    wide: bool = False
    public: bool = False
    """Whether the file itself is public, as noisy counts are: what is made of it may show it."""
    sums: tuple[str, ...] = ()
    """True counts that do not begin like the others."""
    paid: bool = False
    """Whether a ledger beside it is charged: it changes, and a charge for no noise is kept."""
    silent: bool = False
    """Whether some of its commands write nothing but what they say."""

    def mutated(self, rng: Random) -> bytes:
        """The file after one to three accidents."""
        content = self.content
        for _ in range(int(rng.integers(1, 4))):
            if not content:
                break
            if self.file.endswith(".parquet"):
                content = _mutated_parquet(content, rng)
            elif self.file.endswith(".db"):
                content = _mutated_sqlite(content, rng)
            elif self.file.endswith(".duckdb"):
                content = _mutated_duckdb(content, rng)
            else:
                content = PLAIN[int(rng.integers(len(PLAIN)))](content, rng)
        return content

    def declared(self, content: bytes) -> str:
        """The labels a user of the mutated file declares public, as another parser reads it."""
        rows = list(_rows(self.file, content))
        if not rows:
            return ""
        header = rows[0]
        places = [i for i, name in enumerate(header) if name.partition(":")[0] in self.labels]
        found = [row[i] for row in rows[1:] for i in places if i < len(row)]
        return "\n".join([*found, *(header if self.wide else ())])


def _rows(file: str, content: bytes) -> Iterator[list[str]]:
    if file.endswith(".parquet"):
        try:
            frame = pl.read_parquet(content)
        except BaseException:  # Polars panics over some of them
            return
        yield frame.columns
        yield from ([str(each) for each in row] for row in frame.rows())
        return
    text = content.decode("utf-8-sig", "replace").replace("\0", "")
    header = text.lstrip("\n\r ,;\t|").partition("\n")[0]
    mark = max(",;\t|", key=header.count)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    except csv.Error:
        yield from (line.split(mark) for line in text.splitlines())


def kinds() -> tuple[Kind, ...]:
    """The files that everything is tried on."""
    release = ("release", "FILE", "--epsilon", EPSILON, "--out", "out", "--count", "n")
    public, domain = ("--cells-are-public",), ("--domain", "domain.csv")
    by = ("--by", "region,county,kind")
    adjusted = [("--adjust", each) for each in ("least-squares", "mode", "clipped")]
    cells = _cells()
    text = cells.write_csv().encode()
    listed: dict[str, str | bytes] = {
        "domain.csv": _places((*KINDS, "x")).write_csv(),
        "domain.toml": DOMAIN,
    }
    people: dict[str, str | bytes] = {"records.toml": RECORD_DOMAIN, "schema.toml": SCHEMA}
    account = {"l.db": _ledger()}
    levels = ("region", "county", "kind")
    sdmx = cells.select(
        pl.lit("A:B(1.0)").alias("DATAFLOW"),
        pl.col("region").alias("region: Region"),
        "county",
        "kind",
        pl.col("n").alias("OBS_VALUE"),
        pl.lit("A").alias("OBS_STATUS"),
    )
    flat = pl.DataFrame({"part": list("abcdefgh"), "n": _counts(8)})
    return (
        Kind(
            name="cells",
            file="cells.csv",
            content=flat.write_csv().encode(),
            commands=tuple((*release, *public, "--by", "part", *each) for each in adjusted),
            labels=("part",),
        ),
        Kind(
            name="levels",
            file="cells.csv",
            content=text,
            commands=((*release, *by, *domain, "--adjust", "least-squares"),
                      (*release, *by, *public, "--adjust", "clipped"),
                      (*release, *by, *domain, "--adjust", "mode", "--zeros", "kind=x"),
                      (*release, *by, "--domain", "domain.toml", *adjusted[0])),
            beside=listed,
            labels=levels,
        ),
        Kind(
            name="wide",
            file="cells.csv",
            content=_wide(cells).write_csv().encode(),
            commands=((*release, *by, *public, "--layout", "wide", *adjusted[0]),
                      (*release, *by, *domain, "--layout", "wide", *adjusted[2])),
            beside=listed,
            labels=levels,
            wide=True,
        ),
        Kind(
            name="sdmx",
            file="cells.csv",
            content=sdmx.write_csv().encode(),
            commands=((*release, *by, *public, "--layout", "sdmx", *adjusted[0]),
                      (*release, *by, *domain, "--layout", "sdmx", *adjusted[1])),
            beside=listed,
            labels=levels,
        ),
        Kind(
            name="totals",
            file="cells.csv",
            content=_with_totals(cells).write_csv().encode(),
            sums=tuple(str(n) for n in _with_totals(cells)["n"].tail(2)),
            commands=((*release, *by, *public, "--total-code", "Total", *adjusted[0]),
                      (*release, *by, *domain, "--total-code", "Total", *adjusted[2])),
            beside=listed,
            labels=levels,
        ),
        Kind(
            name="hierarchy",
            file="cells.csv",
            content=_coded().write_csv().encode(),
            commands=((*release, "--by", "region,county", "--domain", "codes.toml", *adjusted[0]),
                      (*release, "--by", "region,county", "--domain", "codes.toml",
                       "--total-code", "code=T", *adjusted[1])),
            beside={"codes.toml": CODES, "codes.hrc": "N\n@N1\n@N2\nS\n@S1\n@S2\n"},
        ),
        Kind(
            name="pieces",
            file="cells.csv",
            content=text,
            commands=((*release, *by, *public, "--piece", "4", *adjusted[0]),
                      (*release, *by, *domain, "--piece", "4", *adjusted[1]),
                      (*release, *by, "--domain", "domain.toml", "--piece", "4", *adjusted[2])),
            beside=listed,
            labels=levels,
        ),
        Kind(
            name="Parquet",
            file="cells.parquet",
            content=_parquet(cells),
            commands=((*release, *by, *public, *adjusted[0]),
                      (*release, *by, *domain, *adjusted[1]),
                      (*release, *by, *public, "--piece", "4", *adjusted[2]),
                      (*release, *by, "--domain", "domain.toml", "--piece", "4", *adjusted[0])),
            beside=listed,
            labels=levels,
        ),
        Kind(
            name="records",
            file="records.csv",
            content=_records().write_csv().encode(),
            commands=RECORD_COMMANDS,
            beside=people,
        ),
        Kind(
            name="records in Parquet",
            file="records.parquet",
            content=_parquet(_records()),
            commands=RECORD_COMMANDS,
            beside=people,
        ),
        Kind(
            name="records in SQLite",
            file="records.db",
            content=_sqlite(_records().columns, _records().rows()),
            commands=((*RECORD_COMMANDS[5], "--table", "people"),),
            beside=people,
        ),
        Kind(
            name="records in DuckDB",
            file="records.duckdb",
            content=_duckdb(_records()),
            commands=(*DUCKDB_COMMANDS, (*RECORD_COMMANDS[5], "--table", "people")),
            beside=people,
        ),
        Kind(
            name="paid cells",
            file="cells.csv",
            content=text,
            commands=((*release, *by, *public, *PAID, *adjusted[0]),
                      (*release, *by, *domain, *PAID, "--zeros", "kind=x", *adjusted[1]),
                      (*release, *by, *public, "--piece", "4", *PAID, *adjusted[2])),
            beside=listed | account,
            labels=levels,
            paid=True,
        ),
        Kind(
            name="paid records",
            file="records.csv",
            content=_records().write_csv().encode(),
            commands=(
                (*RECORD_RELEASE, "--person", "id", *PAID, "--adjust", "clipped"),
                (*RECORD_RELEASE, "--piece", "4", *PAID, "--adjust", "mode"),
                (*RECORD_COMMANDS[3][:-1], "out.parquet", *PAID),
                (*RECORD_COMMANDS[5], *PAID),
            ),
            beside=people | account,
            paid=True,
        ),
        Kind(
            name="list of cells",
            file="cells.csv",
            content=text,
            commands=(("plan", "FILE", *by, "--epsilon", "1", "--out", "out.toml"),
                      ("plan", "FILE", *by, "--rho", "1", "--zeros", "kind=f", "--out", "out.toml"),
                      ("audit", "release", "FILE", *by, "--epsilon", "1", "--runs", "1000")),
            beside=listed,
            silent=True,
        ),
        Kind(
            name="noisy",
            file="noisy.csv",
            public=True,
            content=_noisy(cells).write_csv().encode(),
            commands=tuple(
                ("adjust", "FILE", *by, "--noisy", "n", "--epsilon", EPSILON, "--out", "out.csv",
                 "--method", each) for each in ("least-squares", "mode", "clipped")
            ),
        ),
    )  # fmt: skip


RECORD_RELEASE = ("release", "--records", "FILE", "--epsilon", EPSILON, "--out", "out",
                  "--domain", "records.toml", "--by", "region,age")  # fmt: skip
RECORD_COMMANDS = (
    (*RECORD_RELEASE, "--person", "id", "--adjust", "least-squares"),
    (*RECORD_RELEASE, "--outside", "other", "--adjust", "clipped"),
    (*RECORD_RELEASE, "--person", "id", "--rows", "2", "--piece", "4", "--adjust", "mode"),
    ("tabulate", "FILE", "--by", "region,age", "--domain", "records.toml", "--out", "out.csv"),
    ("tabulate", "FILE", "--by", "region,age", "--domain", "records.toml", "--person", "id",
     "--out", "out.parquet"),
    ("verify", "FILE", "--schema", "schema.toml", "--model", "wage ~ age", "--claim", "age > 0",
     "--epsilon", "2", "--partitions", "20", "--out", "out.json"),
)  # fmt: skip
DUCKDB_COMMANDS = tuple(
    (*("people" if word == "FILE" else word for word in command), "--engine", "duckdb://FILE")
    for command in RECORD_COMMANDS[:5]
)
PAID = ("--ledger", "sqlite:///l.db", "--dataset", "people")
MISPLACED = (
    ("plan", "domain.csv", "--by", "region,county,kind", "--plan", "FILE"),
    ("audit", "release", "domain.csv", "--by", "region,county,kind", "--plan", "FILE"),
    ("release", "domain.csv", "--out", "out", "--cells-are-public", "--plan", "FILE"),
    ("release", "domain.csv", "--by", "kind", "--epsilon", "1", "--out", "out", "--domain", "FILE"),
    ("release", "FILE", "--by", "place", "--epsilon", "1", "--out", "out", "--cells-are-public"),
    ("tabulate", "FILE", "--by", "place", "--out", "out.csv", "--domain", "FILE"),
    ("convert", "FILE", "--to", "wide", "--out", "out.csv"),
    ("infer", "FILE", "--out", "out.csv"),
    ("adjust", "FILE", "--by", "place", "--noisy", "n", "--epsilon", "1", "--out", "out.csv"),
    ("risk", "advise", "FILE", "--by", "place", "--count", "n", "--epsilon", "1"),
    ("ledger", "check", "FILE"),
    ("ledger", "show", "sqlite:///FILE"),
    ("ledger", "upgrade", "sqlite:///FILE"),
    ("ledger", "grant", "sqlite:///FILE", "--dataset", "people", "--epsilon", "1"),
    ("ledger", "check", "sqlite:///l.db", "--receipt", "FILE"),
    ("receipt", "check", "FILE"),
    ("verify", "FILE", "--schema", "FILE", "--model", "wage ~ age", "--claim", "age > 0",
     "--epsilon", "1"),
    ("verify", "recompute", "FILE"),
    ("verify", "plan", "--schema", "FILE", "--model", "wage ~ age", "--claim", "age > 0"),
    ("backup", "--config", "FILE", "--out", "out"),
)  # fmt: skip
"""Commands that take another kind of file where they are given a confidential one."""
LIKE_CONFIGURATIONS = (
    b"Zq7Abel = 31337001\nZq7Cole = 31337002\n",
    b"[Zq7Abel]\nZq7age = 31337001\n",
    b"epsilon = 31337001\nZq7Abel = 'Zq7'\n",
    b"[columns]\nZq7Abel = 31337001\n[server]\nZq7 = 31337001\n",
    b"[columns.Zq7Abel]\ntype = 'Zq7Cole'\nlevels = [31337001]\n",
    b"[columns.region]\nZq7Abel = 31337001\n",
    b'{"Zq7Abel": 31337001, "format": "Zq7Cole"}',
    b'{"format": 31337001, "plan": {"Zq7Abel": 1}, "ledger": {"entry": "Zq7"}}',
)
"""Files of records that are by accident what a command takes: TOML, or JSON."""
RECORD_DOMAIN = """other = "elsewhere"
[columns.region]
levels = ["North", "South"]
[columns.age]
edges = [0, 18, 65, inf]
"""
DOMAIN = """[columns.region]
levels = ["North", "South"]
[columns.county]
levels = ["Ash", "Bay", "Cole"]
[columns.kind]
levels = ["f", "m", "x"]
"""
CODES = """[nested.place]
columns = ["region", "county"]
hierarchy = "codes.hrc"
code = "code"
"""
SCHEMA = """[person]
id = "id"
[columns.wage]
type = "number"
low = 0
high = 40000000
[columns.age]
type = "integer"
low = 0
high = 120
"""


def _counts(size: int) -> list[int]:
    return [int(f"{COUNT}{i:03}") for i in range(1, size + 1)]


def _cells() -> pl.DataFrame:
    places = _places(KINDS)
    return places.with_columns(n=pl.Series(_counts(len(places))))


def _places(kinds: tuple[str, ...]) -> pl.DataFrame:
    rows = [(a, b, c) for a in REGIONS for b in COUNTIES for c in kinds]
    return pl.DataFrame(rows, schema=["region", "county", "kind"], orient="row")


def _wide(cells: pl.DataFrame) -> pl.DataFrame:
    return cells.pivot("kind", index=["region", "county"], values="n")


def _with_totals(cells: pl.DataFrame) -> pl.DataFrame:
    sums = cells.group_by("region", maintain_order=True).agg(pl.col("n").sum())
    sums = sums.with_columns(county=pl.lit("Total"), kind=pl.lit("Total"))
    return pl.concat([cells, sums.select(cells.columns)])


def _coded() -> pl.DataFrame:
    codes = ["N1", "N2", "S1", "S2"]
    return pl.DataFrame({"code": codes, "n": _counts(4), "remark": ["", "", "", ""]})


def _records() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    size = 40
    return pl.DataFrame(
        {
            "id": [f"{CELL}p{i // 2:03}" for i in range(size)],
            "region": [REGIONS[i] for i in rng.integers(2, size=size)],
            "age": rng.integers(1, 90, size),
            "illness": [f"{CELL}ill{i}" for i in rng.integers(9, size=size)],
            "wage": [int(f"{COUNT}{i:03}") for i in rng.integers(999, size=size)],
        }
    )


def _noisy(cells: pl.DataFrame) -> pl.DataFrame:
    parts = [cells]
    for depth in (2, 1, 0):
        by = ["region", "county", "kind"][:depth]
        sums = cells.group_by(by, maintain_order=True).agg(pl.col("n").sum()) if by else (
            cells.select(pl.col("n").sum()))  # fmt: skip
        parts.append(sums)
    return pl.concat(parts, how="diagonal").select("region", "county", "kind", "n")


def _sqlite(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A table `people` in a file of SQLite, whose columns take values of any type."""
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        connection.execute(f"CREATE TABLE people ({names})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO people VALUES ({places})", rows)
        connection.commit()
        return connection.serialize()


def _duckdb(frame: pl.DataFrame) -> bytes:
    """The same in a file of DuckDB, with the types of the frame."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "people.duckdb"
        with duckdb.connect(str(file)) as engine:
            engine.register("given", frame.to_arrow())
            engine.execute("CREATE TABLE people AS SELECT * FROM given")
        return file.read_bytes()


def _ledger() -> bytes:
    """An account that can pay for any of the commands."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "l.db"
        with ledger_at(f"sqlite:///{file}", make=True) as ledger, ledger.writing() as book:
            book.set_cap("dataset", "people", 100 * MICRO, terms=Terms())
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
        return file.read_bytes()


def _parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out, compression="uncompressed")
    return out.getvalue()


# Accidents of text files: each takes bytes and gives bytes.


def _place(content: bytes, rng: Random) -> int:
    return int(rng.integers(len(content) + 1))


def _lines(content: bytes) -> list[bytes]:
    return content.split(b"\n")


def _insert(*what: bytes) -> Callable[[bytes, Random], bytes]:
    def change(content: bytes, rng: Random) -> bytes:
        at, chosen = _place(content, rng), what[int(rng.integers(len(what)))]
        return content[:at] + chosen + content[at:]

    return change


def _in_first_line(content: bytes, rng: Random) -> bytes:
    at = int(rng.integers(max(len(_lines(content)[0]), 1)))
    return content[:at] + b'"' + content[at:]


def _without_first_line(content: bytes, rng: Random) -> bytes:
    return b"\n".join(_lines(content)[int(rng.integers(1, 3)) :])


def _byte_gone(content: bytes, rng: Random) -> bytes:
    at, length = _place(content, rng), int(rng.integers(1, 12))
    return content[:at] + content[at + length :]


def _mark_gone(content: bytes, rng: Random) -> bytes:
    places = [i for i, byte in enumerate(content) if byte in b',\n"']
    at = places[int(rng.integers(len(places)))] if places else 0
    return content[:at] + content[at + 1 :]


def _separators(content: bytes, rng: Random) -> bytes:
    return content.replace(b",", (b";", b"\t", b"|", b" ", b",,")[int(rng.integers(5))])


def _line_ends(content: bytes, rng: Random) -> bytes:
    return content.replace(b"\n", (b"\r", b"\r\n", b"\n\n", b" ", b"\x0b")[int(rng.integers(5))])


def _swapped(content: bytes, rng: Random) -> bytes:
    lines = _lines(content)
    i, j = rng.integers(len(lines), size=2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _line_twice(content: bytes, rng: Random) -> bytes:
    lines = _lines(content)
    lines.insert(int(rng.integers(len(lines))), lines[int(rng.integers(len(lines)))])
    return b"\n".join(lines)


def _line_gone(content: bytes, rng: Random) -> bytes:
    lines = _lines(content)
    del lines[int(rng.integers(len(lines)))]
    return b"\n".join(lines)


def _field_changed(content: bytes, rng: Random) -> bytes:
    lines = _lines(content)
    i = int(rng.integers(len(lines)))
    fields = lines[i].split(b",")
    j = int(rng.integers(len(fields)))
    own = fields[j]
    fields[j] = (
        b"", b"-" + own, own + b".5", own + b"e3", b"[" + own + b"]", b'"' + own, own + b'"',
        b'"' + own + b'"x', b"'" + own + b"'", b"nan", b"9" * 30, b"NULL", own + b" ",
        f"{CELL}x".encode(), f"{COUNT}999".encode(), b"x" * 200_000, own * 20_000, b"1e400",
        own + b"\n", own.replace(b"3", "\u0663".encode()), b"\xff" + own, b"\\" + own,
    )[int(rng.integers(22))]  # fmt: skip
    lines[i] = b",".join(fields)
    return b"\n".join(lines)


def _fields_swapped(content: bytes, rng: Random) -> bytes:
    lines = _lines(content)
    i = int(rng.integers(len(lines)))
    fields = lines[i].split(b",")
    lines[i] = b",".join(fields[j] for j in rng.permutation(len(fields)))
    return b"\n".join(lines)


def _columns_moved(content: bytes, rng: Random) -> bytes:
    rows = [line.split(b",") for line in _lines(content)]
    order = rng.permutation(len(rows[0]))
    moved = [[row[j] for j in order if j < len(row)] for row in rows[1:]]
    return b"\n".join(b",".join(row) for row in [rows[0], *moved])


def _cut_off(content: bytes, rng: Random) -> bytes:
    return content[: _place(content, rng)]


def _encoded(content: bytes, rng: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32")[rng.integers(5)])


def _binary(content: bytes, rng: Random) -> bytes:
    at, noise = _place(content, rng), rng.bytes(int(rng.integers(1, 60)))
    return content[:at] + noise + content[at + len(noise) * int(rng.integers(2)) :]


def _zeros(content: bytes, rng: Random) -> bytes:
    at, length = _place(content, rng), int(rng.integers(1, 40))
    return content[:at] + bytes(length) + content[at + length :]


def _spliced(content: bytes, rng: Random) -> bytes:
    at, there = _place(content, rng), _place(content, rng)
    return content[:at] + content[there : there + int(rng.integers(60))] + content[at:]


def _quoted_over_lines(content: bytes, rng: Random) -> bytes:
    at = _place(content, rng)
    to = at + int(rng.integers(1, 60))
    return content[:at] + b'"' + content[at:to] + b'"' + content[to:]


PLAIN: tuple[Callable[[bytes, Random], bytes], ...] = (
    _insert(b'"'),
    _insert(b'"', b'""', b"'", b"`", b"\\", b"#", b"{", b"\0", b"\r", b"\x1a", b"\xc3"),
    _insert(b","),
    _insert(b"\n"),
    _in_first_line,
    _without_first_line,
    _byte_gone,
    _mark_gone,
    _separators,
    _line_ends,
    _swapped,
    _line_twice,
    _line_gone,
    _field_changed,
    _field_changed,
    _fields_swapped,
    _columns_moved,
    _cut_off,
    _encoded,
    _binary,
    _zeros,
    _spliced,
    _quoted_over_lines,
)


# Accidents of Parquet files: of their bytes, and of what is in them.


def _mutated_parquet(content: bytes, rng: Random) -> bytes:
    if rng.random() < 0.5:
        return (_cut_off, _binary, _zeros, _byte_gone, _spliced, _encoded)[rng.integers(6)](
            content, rng
        )
    try:
        frame = pl.read_parquet(content)
    except BaseException:  # Polars panics over some of them
        return _binary(content, rng)
    if not frame.width or not frame.height:
        return _binary(content, rng)
    try:
        return _parquet(_mutated_frame(frame, rng))
    except pl.exceptions.PolarsError:
        return _binary(content, rng)


ODD = (None, f"{CELL}y", int(f"{COUNT}999"), -1, 2**62, 1e300, b"\xff\xfe", "a\nb", "")
"""Values that a database may hold in any column."""


def _mutated_sqlite(content: bytes, rng: Random) -> bytes:
    """Bytes of the file changed, or values, names of columns and columns of its table."""
    found = _people(content) if rng.random() < 0.6 else None
    if found is None:
        return (_cut_off, _binary, _zeros, _byte_gone, _spliced, _encoded)[rng.integers(6)](
            content, rng
        )
    names, rows = found
    row, column = int(rng.integers(len(rows))), int(rng.integers(len(names)))
    match int(rng.integers(4)):
        case 0:
            names[column] = str(rows[row][column])
        case 1:
            names[column] += " "
        case 2:
            rows = [each[:column] + each[column + 1 :] for each in rows]
            del names[column]
        case _:
            rows[row][column] = ODD[int(rng.integers(len(ODD)))]
    return _sqlite(names, rows)


def _people(content: bytes) -> tuple[list[str], list[list[object]]] | None:
    """The names and rows of the table, if it can be read."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.deserialize(content)
            found = connection.execute("SELECT * FROM people")
            names = [str(each[0]) for each in found.description]
            rows = [list(each) for each in found]
        except (sqlite3.Error, UnicodeDecodeError):
            return None
    few = len(names) < 2 or len({name.casefold().strip() for name in names}) < len(names)
    return None if few or not rows else (names, rows)


def _mutated_duckdb(content: bytes, rng: Random) -> bytes:
    """Values, types and columns changed, or the file cut off; DuckDB takes its bytes on trust."""
    if rng.random() < 0.1:
        return _cut_off(content, rng)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "people.duckdb"
        file.write_bytes(content)
        try:
            with duckdb.connect(str(file), read_only=True) as engine:
                frame = pl.from_arrow(engine.sql("SELECT * FROM people").to_arrow_table())
        except (duckdb.Error, pl.exceptions.PolarsError):  # a type that only DuckDB knows
            return content
    assert isinstance(frame, pl.DataFrame)
    if not frame.width or not frame.height:
        return content
    try:
        return _duckdb(_mutated_frame(frame, rng))
    except (pl.exceptions.PolarsError, duckdb.Error):
        return content


def _mutated_frame(frame: pl.DataFrame, rng: Random) -> pl.DataFrame:
    name = frame.columns[int(rng.integers(frame.width))]
    row = int(rng.integers(frame.height))
    value, column = frame[name][row], pl.col(name)
    here = pl.int_range(pl.len()) == row
    changes: tuple[Callable[[], pl.DataFrame], ...] = (
        lambda: frame.with_columns(pl.concat_list(column)),
        lambda: frame.with_columns(pl.struct(column.alias(str(value))).alias(name)),
        lambda: frame.with_columns(column.cast(pl.String).cast(pl.Binary)),
        lambda: frame.with_columns((column.cast(pl.String) + "\xff").cast(pl.Binary)),
        lambda: frame.with_columns(column.cast(pl.String).cast(pl.Categorical)),
        lambda: frame.with_columns(column.cast(pl.String)),
        lambda: frame.with_columns(column.cast(pl.String).cast(pl.Float64, strict=False)),
        lambda: frame.with_columns(column.cast(pl.Float64) + 0.5),
        lambda: frame.with_columns(column.cast(pl.Float64) * float("nan")),
        lambda: frame.with_columns(-column),
        lambda: frame.with_columns(column.cast(pl.Int64).cast(pl.Datetime)),
        lambda: frame.with_columns(column.cast(pl.Int64).cast(pl.Duration)),
        lambda: frame.with_columns(column.is_null()),
        lambda: frame.with_columns(pl.lit(None).alias(name)),
        lambda: frame.with_columns(pl.when(here).then(None).otherwise(column).alias(name)),
        lambda: frame.with_columns(
            pl.when(here).then(pl.lit(f"{CELL}y")).otherwise(column.cast(pl.String)).alias(name)
        ),
        lambda: frame.with_columns(
            pl.when(here).then(pl.lit("a\nb")).otherwise(column.cast(pl.String)).alias(name)
        ),
        lambda: frame.with_columns(column.cast(pl.UInt64) * 2**38),
        lambda: frame.with_columns(column.cast(pl.Decimal(20, 2)) / 3),
        lambda: frame.rename({name: str(value)}),
        lambda: frame.drop(name),
        lambda: frame.head(0),
        lambda: pl.concat([frame, frame[row : row + 1]]),
        lambda: frame.with_columns(pl.Series(name, rng.permutation(frame[name].to_list()))),
    )
    return changes[int(rng.integers(len(changes)))]()


def written(kind: Kind, content: bytes, folder: Path) -> None:
    """The mutated file and the public ones in a folder."""
    (folder / kind.file).write_bytes(content)
    for name, other in kind.beside.items():
        raw = other.encode() if isinstance(other, str) else other
        (folder / name).write_bytes(raw)
