"""The picture of the README: the bundled example released and inferred, as Chromium shows it.

Usage: python docs/readme_picture.py; needs Playwright and the system's Chromium. The noise has no
seed, so every run gives another picture.
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import countwise as cw
from countwise.examples import BY, COUNT, clinics
from countwise.pages.imprint import Imprint
from countwise.pages.page import environment
from countwise.release.counts_page import level_chart
from countwise.reports.posterior_page import pictures

PICTURE = Path(__file__).with_name("pictures") / "readme.png"
PAGE = """{% extends "base.html" %}{% block body %}
<style>.top, footer { display: none } main { max-width: 70rem; padding: 0 }
h2 { margin: .6rem 0 } .two { display: grid; grid-template-columns: 38rem 1fr; gap: 2rem }
.two { padding: .6rem 1rem } p { font-size: .85rem; color: var(--soft) }
.pictures { grid-template-columns: 1fr; gap: .6rem }</style>
<div class="two"><section><h2>Released at ε = 3</h2>{{ chart }}
<p>dot: released, adds up · circle: noisy, as drawn · bar: 95% range of the true count</p></section>
<section><h2>What the true counts can be</h2><div class="pictures">
{% for each in pictures %}<figure><h3>{{ each.name }}</h3>{{ each.chart }}</figure>{% endfor %}
</div></section></div>{% endblock %}"""


def page() -> str:
    """Clinics with their noise, and the posterior of the regions."""
    table = cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    made = cw.release(table, cw.Plan(epsilon=3, adjust="mode"))
    return (
        environment()
        .from_string(PAGE)
        .render(
            title="countwise",
            imprint=Imprint(),
            chart=level_chart(made, 2),
            pictures=pictures(cw.infer(made))[1:3],
        )
    )


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder) / "picture.html"
        place.write_text(page(), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        shown = browser.new_page(viewport={"width": 1000, "height": 480}, device_scale_factor=1.5)
        shown.goto(place.as_uri())
        shown.locator(".two").screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
