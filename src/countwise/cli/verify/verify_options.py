"""What the commands of countwise verify take."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = (
    'Example: countwise verify data.csv --schema schema.toml --model "hours ~ education_years + '
    'age + C(sex)" --claim "education_years > 1.0" --epsilon 1 --partitions 50'
)
CLAIMS = (
    "What is claimed: x > 1 | 0.5 < x < 2 | x in \\[0, 1] | x within 0.2 of 1.4 | "
    '2*x - C(f)\\[b] > 0 | predict(x = 1, f = "b") > 3 | significant(x > 0, 0.05) | '
    "trend(x over year) > 0 | x cut at 0, 1 | several joined by and."
)
MODELS = (
    "What is fitted: y ~ x + C(f) + a:b + a*b + log(x) + sqrt(x) + poly(x, 2) + x/10, and "
    'perhaps: where age >= 25 and sex = "Female".'
)

Schema = Annotated[Path, typer.Option("--schema", help="Public schema of the data, TOML.")]
Model = Annotated[str, typer.Option("--model", help=MODELS)]
Claim = Annotated[str, typer.Option("--claim", help=CLAIMS)]
Family = Annotated[str, typer.Option(help="ols, logistic or poisson.")]
Mechanism = Annotated[str, typer.Option(help="lattice, laplace or binary.")]
Alpha = Annotated[
    str, typer.Option(help="Prior: Dirichlet parameters, one for all or one for each outcome.")
]
Border = Annotated[
    float | None,
    typer.Option(
        help="What a verdict on the whole data may rely on: the least share of partitions in which "
        "a claim just at its threshold holds, or its opposite. 0.5: estimates are symmetric."
    ),
]
Skewness = Annotated[
    float | None,
    typer.Option(
        help="The same as the largest skewness of what single persons add to the estimate; needs "
        "count in the schema, whose own skewness it replaces."
    ),
]
Table = Annotated[str | None, typer.Option(help="Table, where the data is a database.")]
Page = Annotated[Path | None, typer.Option("--page", help="Write a page with the plot here.")]
