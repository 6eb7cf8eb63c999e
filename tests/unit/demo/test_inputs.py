from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from demo.access_log import LogError
from demo.inputs import prepare
from demo.options import Options
from demo.progress import Progress
from demo.traffic import DEFAULT_VIEWS

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
GENERATED = Options(log=None, duplicates=0.2, seed=1, report=None, keep=False)


def _progress() -> Progress:
    return Progress(io.StringIO())


def test_a_seed_decides_everything() -> None:
    assert prepare(GENERATED, NOW, _progress()) == prepare(GENERATED, NOW, _progress())
    assert prepare(GENERATED, NOW, _progress()) != prepare(replace(GENERATED, seed=2), NOW, _progress())


def test_duplicates_are_a_share_of_the_distinct_events() -> None:
    inputs = prepare(GENERATED, NOW, _progress())

    distinct = inputs.blog.site_views
    assert distinct == len(set(inputs.views))
    assert len(inputs.views) == DEFAULT_VIEWS + round(0.2 * distinct)
    assert len(inputs.jobs) == round(1.2 * len(inputs.customers.distinct))


def test_a_log_is_sent_line_by_line(tmp_path: Path) -> None:
    log, output = tmp_path / "access.log", io.StringIO()
    line = '::1 - - [17/May/2015:10:05:03 +0000] "GET /{} HTTP/1.1" 200 5\n'
    log.write_text(line.format(1) + "?\n" + line.format(2) + "\n" + line.format(1))

    inputs = prepare(replace(GENERATED, log=log, duplicates=0.0), NOW, Progress(output))

    assert [view.url for view in inputs.views] == ["/1", "/2", "/1"]
    assert inputs.unparsable_lines == 2
    assert inputs.blog.views == Counter({"/1": 1, "/2": 1})
    assert "3 views" in output.getvalue()
    assert "2 lines not understood" in output.getvalue()
    assert inputs.jobs == prepare(replace(GENERATED, duplicates=0.0), NOW, _progress()).jobs


def test_a_log_that_has_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        prepare(replace(GENERATED, log=tmp_path / "none.log"), NOW, _progress())
