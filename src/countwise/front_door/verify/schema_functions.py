"""A first public schema for verification, and made-up rows that fit one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from countwise.errors import SchemaError
from countwise.front_door.output_files import output_files, write_frame, write_text
from countwise.front_door.words import PathLike
from countwise.release.crossed_release import read_release
from countwise.release.folder import refuse_existing
from countwise.verification.row_sources import opened
from countwise.verification.schema import read_schema
from countwise.verification.schema_draft import SchemaDraft, draft_schema, stated_columns
from countwise.verification.synthetic_rows import synthetic_rows


def verify_schema(
    data: PathLike,
    *,
    person: str | None = None,
    one_row_each: bool = False,
    number: Sequence[str] = (),
    integer: Sequence[str] = (),
    category: Sequence[str] = (),
    binary: Sequence[str] = (),
    count: int | None = None,
    rows: int | None = None,
    title: str = "",
    names_are_public: bool = False,
    table: str | None = None,
    out: PathLike | None = None,
    overwrite: bool = False,
) -> SchemaDraft:
    """Draft a public schema from the names of columns and what you state, never from values.

    The `person` is the column that says whose a row is, unless there is `one_row_each`. State each
    `number` and `integer` as "age: 18 to 70", a `category` as "sex: Female, Male" with the
    reference first, and `binary` columns of 0 and 1 by name. What is not stated becomes a question:
    column by column if `names_are_public`, so that the first line is a header and no record.
    """
    if (person is None) is not one_row_each:
        raise SchemaError("say how a person is known: either --person COLUMN or --one-row-each.")
    if out is not None:
        refuse_existing(Path(out), overwrite=overwrite)
    stated = stated_columns(*([text] if isinstance(text, str) else list(text)
                              for text in (number, integer, category, binary)))  # fmt: skip
    with opened(str(data), table=table) as source:
        columns = list(source.columns)
    draft = draft_schema(
        columns,
        stated,
        person=person,
        count=count,
        rows=rows,
        title=title,
        names_are_public=names_are_public,
    )
    if out is not None:
        write_text(draft.text, Path(out), overwrite=overwrite)
    return draft


def verify_synthetic(
    schema: PathLike,
    *,
    out: PathLike | None = None,
    persons: int | None = None,
    release: PathLike | None = None,
    seed: int | None = None,
    overwrite: bool = False,
) -> pl.DataFrame:
    """Make up rows that fit a schema, to rehearse claims on; no confidential row is read.

    Columns are drawn evenly and one by one, but those that a `release` counts are drawn together,
    in proportion to its released counts. There are as many `persons` as the schema says.
    """
    if out is not None:
        output_files({"--out": Path(out)}, overwrite=overwrite)
    facts = read_schema(Path(schema))
    many = persons if persons is not None else facts.persons
    if many is None or many < 1:
        raise SchemaError("the schema has no count of persons. To fix, add --persons 1000.")
    counted = None if release is None else read_release(Path(release))
    rng = np.random.default_rng(seed)
    rows = synthetic_rows(facts, persons=many, rng=rng, release=counted)
    if out is not None:
        write_frame(rows, Path(out), overwrite=overwrite)
    return rows
