"""What notebooks show: objects in a line, tables of their first rows, pictures of the pages."""

from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from countwise.errors import InputError
from countwise.pages.page import render

ROWS = 10  # of a table that a notebook shows
WORDS = 30  # pixels of the lines of a picture that are no chart


class Picture:
    """A picture of the pages: shown by notebooks, saved as a page with `save`."""

    def __init__(self, chart: Markup, *, title: str, height: int) -> None:
        self.title, self.height = title, height
        self._page = render("picture.html", title=title, chart=chart)

    def __repr__(self) -> str:
        return f"Picture({self.title!r}; notebooks show it, .save writes it as a page)"

    def _repr_html_(self) -> str:
        """A frame of its own, so that the look of the notebook and of the picture stay apart."""
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self._page)}" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )

    def save(self, path: str | Path) -> None:
        """Write the picture as an HTML page, complete in itself."""
        Path(path).write_text(self._page, encoding="utf-8")


class Framed:
    """What has a table: in a line, in the first rows of it, and as a data frame of either kind."""

    def to_polars(self) -> pl.DataFrame:
        """The table as a data frame of Polars."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a data frame of pandas."""
        for name in ("pandas", "pyarrow"):
            if find_spec(name) is None:
                raise InputError(f"{name} is not installed. To fix, pip install pandas pyarrow")
        return self.to_polars().to_pandas()

    def _repr_html_(self) -> str:
        """The line and the first rows."""
        return frame_html(self.to_polars(), about=repr(self))


def frame_html(frame: pl.DataFrame, *, about: str) -> str:
    """The first rows of a data frame, numbers to the right."""
    first = frame.head(ROWS)
    return render(
        "frame.html",
        about=about,
        names=[(name, kind.is_numeric()) for name, kind in frame.schema.items()],
        rows=[[cell_text(cell) for cell in row] for row in first.rows()],
        more=len(frame) - len(first),
    )


def cell_text(cell: object) -> tuple[str, bool]:
    """A cell as it is read, and whether it is a number."""
    if cell is None:
        return "", False
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell), False
    return (f"{cell:,}" if isinstance(cell, int) else f"{cell:,.4g}"), True
