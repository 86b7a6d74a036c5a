"""Pages from templates; whatever a template is given is escaped unless it is markup already."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def environment() -> Environment:
    """Where templates are found and how they are filled."""
    return Environment(
        loader=PackageLoader("countwise.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: object) -> str:
    """The page as text, complete in itself."""
    return environment().get_template(template).render(**values)
