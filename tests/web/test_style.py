"""Contrast by WCAG 2: at least 4.5 for text, and 3 for the borders of controls."""

import json
import re

import pytest

from thresher.web import pages
from thresher.web.assets import STATIC

STANDINGS = ("reaches", "misses", "open", "retired", "baseline")
CSS = (STATIC / "style.css").read_text()
FIGURES = json.loads((STATIC / "figures.json").read_text())["themes"]


def schemes() -> dict[str, dict[str, str]]:
    light, dark = (
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[:2]
    )
    return {"light": light, "dark": {**light, **dark}}


def luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_black_on_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("ground", ["ground", "card"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_controls_stand_out(scheme: str, ground: str) -> None:
    colours = schemes()[scheme]
    for name in ("ink", "soft", "accent", *STANDINGS):
        assert contrast(colours[name], colours[ground]) >= 4.5, name
    assert contrast(colours["edge"], colours[ground]) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_standing_has_one_colour_in_text_and_pictures(scheme: str) -> None:
    colours = schemes()[scheme]
    assert {name: FIGURES[scheme][name] for name in STANDINGS} == {name: colours[name] for name in STANDINGS}


def test_every_file_that_a_page_names_is_served() -> None:
    text = "".join(file.read_text() for file in STATIC.glob("*.html"))
    assert set(re.findall(r"/static/([\w.]+)", text)) <= set(pages.FILES)
