"""Pages from templates; whatever a template is given is escaped unless it is markup already."""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from countwise.pages.imprint import Imprint, today

POWER = re.compile(r"e\^([\d./]*\d|ε)")


@cache
def environment() -> Environment:
    """Where templates are found and how they are filled."""
    made = Environment(
        loader=PackageLoader("countwise.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["powers"] = powers
    return made


def powers(text: str) -> Markup:
    """Text with what is written e^0.5 as a power of e."""
    return Markup(POWER.sub(r"e<sup>\1</sup>", str(escape(text))))


def render(template: str, **values: object) -> str:
    """The page as text, complete in itself; without an `imprint` it has the day alone."""
    return (
        environment().get_template(template).render(**{"imprint": Imprint(date=today())} | values)
    )
