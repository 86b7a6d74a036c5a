"""Files in TOML: plans, domains, schemas, configurations."""

import re
import tomllib
from pathlib import Path
from typing import Any

from countwise.errors import InputError

PLACE = re.compile(r"\((at [a-z]+ ?\d*(?:, column \d+)?(?:of document)?)\)$")


def read_toml(path: Path, *, what: str, error: type[InputError]) -> dict[str, Any]:
    """What a file in TOML says; `what` names its kind.

    Of what the parser says only the place is told: the rest may quote the file, and a file given
    by mistake may be one of records.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path}: there is no such {what} file.") from None
    except UnicodeDecodeError:
        raise error(f"{path}: not a {what} in TOML: it is not text in UTF-8.") from None
    except tomllib.TOMLDecodeError as problem:
        found = PLACE.search(str(problem))
        where = f", {found[1]}" if found else ""
        raise error(f"{path}: not a {what} in TOML{where}.") from None
