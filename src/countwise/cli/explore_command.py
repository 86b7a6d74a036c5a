"""countwise explore: a release in the browser of this machine."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.front_door import explore_function

EXAMPLE = "Example: countwise explore release/"


def explore(
    folder: Annotated[Path, typer.Argument(help="Release folder.")],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")
    ] = 8431,
    json: options.Json = False,
) -> None:
    """Look around in a release in your browser: search, and sums of what you click.

    Serves this machine alone and changes nothing. Ctrl-C ends it.
    """

    def ready(address: str) -> None:
        if json:
            print_json({"address": address})
        else:
            out.print(f"Open {address} in a browser; Ctrl-C ends it.", soft_wrap=True)

    explore_function.explore(folder, port=port, ready=ready)
