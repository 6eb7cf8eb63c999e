"""Measures of a blog as they are read from a table in memory equal the truth."""

from __future__ import annotations

from datetime import timedelta

import pytest

from demo.example import Numbers
from demo.examples.blog.example import Blog
from demo.examples.blog.measures import Measures
from demo.examples.blog.traffic import View, blog_views
from dynamodb_counters.testing import counters_in_memory
from examples.blog.declarations import ACTIVE, LATEST, SIZES, VIEW
from tests.unit.demo.fakes import NOW, setup

MEASURES = Measures(ACTIVE, SIZES, LATEST)


def _blog(views: list[View]) -> Blog:
    return Blog(views, NOW)


@pytest.fixture(scope="module")
def read() -> tuple[Blog, Numbers]:
    blog = _blog(blog_views(setup().rng("views"), NOW, 300))
    with counters_in_memory([ACTIVE, SIZES, LATEST], now=NOW) as counters:
        counters.accept_many(VIEW, [view.as_event() for view in blog.views])
        return blog, MEASURES.read(counters, blog.truth)


def test_they_are_as_the_truth_says(read: tuple[Blog, Numbers]) -> None:
    blog, found = read
    assert found == MEASURES.expected(blog.truth, found)
    assert found.keys() == MEASURES.names()
    assert min(map(len, found.values())) >= 3


@pytest.mark.parametrize("name", sorted(MEASURES.names()))
def test_a_wrong_one_is_noticed(read: tuple[Blog, Numbers], name: str) -> None:
    blog, found = read
    for one, value in list(found[name].items())[-3:]:
        wrong = {**found, name: {**found[name], one: value * 1.03 + 1}}
        assert MEASURES.expected(blog.truth, wrong)[name][one] != wrong[name][one]


def test_a_page_that_the_client_viewed_earlier_is_not_its_latest() -> None:
    earlier, later = ((NOW - timedelta(seconds=age)).isoformat() for age in (60, 0))
    truth = _blog([View("/a", earlier, "c"), View("/b", later, "c")]).truth
    found = {"latest page": {"c /a": NOW.timestamp()}}
    assert MEASURES.expected(truth, found)["latest page"] != found["latest page"]


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    truth = _blog([View("/a", NOW.isoformat(), f"c{size}", size) for size in range(1, 21)]).truth
    assert [truth.size(percent, NOW.date(), 1) for percent in (1, 50, 95, 96, 100)] == [1, 10, 19, 20, 20]


def test_no_views_have_no_measures() -> None:
    truth = _blog([]).truth
    with counters_in_memory([ACTIVE], now=NOW) as counters:
        assert MEASURES.read(counters, truth) == MEASURES.expected(truth, {}) == {}
