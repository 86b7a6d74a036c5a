"""One of several words: the check of every argument that has few possible values."""

from collections.abc import Iterable
from difflib import get_close_matches

from countwise.errors import ChoiceError, InputError


def one_of(
    value: str, options: Iterable[str], *, what: str, error: type[InputError] = ChoiceError
) -> str:
    """The value if it is an option; else a refusal that names the options and the nearest.

    >>> one_of("mode", ("mode", "draw"), what="adjust")
    'mode'
    >>> one_of("mood", ("mode", "draw"), what="adjust")
    Traceback (most recent call last):
    countwise.errors.ChoiceError: adjust must be one of mode, draw; got 'mood'. Did you mean 'mode'?
    """
    options = list(options)
    if value in options:
        return value
    near = get_close_matches(value, options, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise error(f"{what} must be one of {', '.join(options)}; got {value!r}.{hint}")
