"""The bounds of `production.py`: what a clear leaves pinned, and how exactly requests fit."""

import sys

import production
import pytest
from conftest import interpreter

pytestmark = pytest.mark.simulated("counts pins of more memory than there is")


@pytest.fixture
def pythons(run, monkeypatch):
    """Its programs are started as those of any other test."""
    stock = interpreter("stock")

    def answer(python: str, program: str, **settings: str):
        which = "stock" if python == stock else "fork"
        (value,) = run("from program import *\n" + program, which, **settings).value
        return value

    monkeypatch.setattr(production, "run", answer)
    return stock, sys.executable


def test_a_clear_leaves_what_stock_leaves_and_little_more_without_a_threshold(pythons):
    """The table of pytorch/pytorch#181094, where threshold 0 kept all of 36.4 GB."""
    by = production.clear(*pythons)
    stock = by["stock"]["after"]
    for name, it in by.items():
        if name.startswith("threshold 4 MB"):
            assert abs(it["after"] / stock - 1) <= 0.01, name
        if name.startswith("threshold 0"):
            assert it["after"] <= 1.2 * it["live"], name
        assert it["before"] > it["after"] >= it["live"], name


@pytest.mark.parametrize("name", production.SHAPES)
def test_serving_shapes_fit_within_a_twentieth(pythons, name):
    _, fork = pythons
    assert 1 <= production.ratio(fork, name, engine=True, **production.EXACT) <= 1.05


def test_stock_does_not_fit_them(pythons):
    """The control: otherwise the shapes would show nothing."""
    stock, _ = pythons
    assert production.ratio(stock, "129.5 MiB x 64", engine=False) > 1.7


def test_after_the_warm_up_no_step_pins(pythons):
    by = production.step(*pythons)
    assert by["fork"] == [0] * 5
    assert by["stock"][0] == 155
