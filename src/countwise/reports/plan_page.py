"""A page of a plan: what every table's error would be at other losses and shares, to be tried."""

import json
from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from markupsafe import Markup

from countwise.noise.numbers import written
from countwise.pages.lines import BASE, TOP, Line, lines
from countwise.pages.page import render
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.risk.closed_form import ClosedForm
from countwise.risk.loss_curve import LossCurve

GRAIN = 1000  # a slider has so many steps, as shares are planned in thousandths
MOST_CURVES = 5  # as many as can be told apart by colour and dashes
STEPS = 400  # of the slider of the loss: less than 2% of it each
SHARES = "Of the loss, each table with noise of its own gets a share:"
ONE_SHARE = "All of the loss goes to one table, {}, of which the others are sums."
NO_SHARES = (
    "The shares of this plan stay as they are: its errors have no formula that is short enough "
    "for a page. To see others, state them as split in a plan file."
)


def plan_page(
    chosen: Plan,
    budget: Budget,
    curve: LossCurve,
    form: ClosedForm | None,
    *,
    within: Mapping[str, float] | None = None,
) -> str:
    """The page of a settled plan. `within` has the targets of its tables, if there are any."""
    targets = within or {}
    drawn = _drawn(curve)
    positive = curve.widths[:, drawn][curve.widths[:, drawn] > 0]
    ends = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    promise = make_promise(chosen.neighbours, budget)
    return render(
        "plan.html",
        title="What a plan would give",
        spent_as=promise.spent_as,
        in_words=budget.in_words(),
        sum=budget.sum_in_words(),
        warning=budget.warning(),
        symbol=budget.symbol,
        low=log(curve.losses[0]),
        high=log(curve.losses[-1]),
        step=(log(curve.losses[-1]) - log(curve.losses[0])) / STEPS,
        now=log(float(budget.loss)),
        measured=_measured(form),
        grain=GRAIN,
        about_shares=_about_shares(form),
        exactly=form is not None,
        tables=_rows(curve, targets),
        targets=targets,
        left_out=len(curve.tables) - len(drawn),
        chart=_chart(curve, drawn, budget),
        data=_as_json(
            {
                "unit": budget.unit,
                "tables": [{"within": targets.get(name)} for name in curve.tables],
                "curve": {"losses": curve.losses, "widths": curve.widths.tolist()},
                "axes": {
                    "x": (curve.losses[0], curve.losses[-1]), "y": ends, "height": BASE - TOP
                },
                "form": None if form is None else form.to_dict(),
            }
        ),
    )  # fmt: skip


def _measured(form: ClosedForm | None) -> list[dict[str, Any]]:
    """The sliders: a measured table each, with its planned share in steps; none to see for one."""
    if form is None:
        return []
    alone = sum(reach > 0 for reach in form.reach) < 2
    return [
        {"name": name, "weight": round(share * GRAIN), "hidden": alone or reach == 0}
        for name, share, reach in zip(form.names, form.shares, form.reach, strict=True)
    ]


def _about_shares(form: ClosedForm | None) -> str:
    """What the sliders are, or why there is none."""
    if form is None:
        return NO_SHARES
    noisy = [name for name, reach in zip(form.names, form.reach, strict=True) if reach > 0]
    return SHARES if len(noisy) > 1 else ONE_SHARE.format(*noisy or ["none"])


def _rows(curve: LossCurve, targets: Mapping[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "counts": counts,
            "planned": f"±{planned:,.1f}",
            "target": f"±{targets[name]:g}" if name in targets else "none",
        }
        for name, counts, planned in zip(curve.tables, curve.counts, curve.planned, strict=True)
    ]


def _drawn(curve: LossCurve) -> list[int]:
    """The tables that are drawn: spread evenly between the smallest and the largest error."""
    noisy = [i for i in np.argsort(curve.planned, kind="stable").tolist() if curve.planned[i] > 0]
    places = np.linspace(0, len(noisy) - 1, min(MOST_CURVES, len(noisy)))
    return [noisy[i] for i in np.unique(places.round().astype(int))]


def _chart(curve: LossCurve, drawn: Sequence[int], budget: Budget) -> Markup:
    if not drawn:
        return Markup("<p>No published table has noise.</p>")
    return lines(
        [
            Line(label=curve.tables[i], x=curve.losses, y=curve.widths[:, i].tolist(), key=str(i))
            for i in drawn
        ],
        title="Error of tables against the privacy loss",
        x_axis=f"privacy loss {budget.symbol}, planned: {written(budget.loss)}",
        y_axis="95 of 100 errors are within ±",
        log_x=True,
        log_y=True,
        marker="now",
    )


def _as_json(data: Mapping[str, Any]) -> Markup:
    """Data within a page: nothing in it ends the script or begins markup."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
