"""A deployment is known by what it runs and what it counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import dynamodb_counters
from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._stream.deployment import code_digest, deployment_id

_RUNTIME = Path(dynamodb_counters.__file__).parent
_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")


def _views(name: str) -> Aggregate:
    return Aggregate(name, _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})


def test_other_declarations_are_another_deployment() -> None:
    assert deployment_id((_views("a"),)) == deployment_id((_views("a"),))
    assert deployment_id((_views("a"),)) != deployment_id((_views("b"),))


def test_other_code_is_another_deployment_wherever_it_stands(tmp_path: Path) -> None:
    copies = [tmp_path / name for name in ("same", "changed", "renamed", "compiled")]
    for copy in copies:
        shutil.copytree(_RUNTIME, copy, ignore=shutil.ignore_patterns("__pycache__"))
    same, changed, renamed, compiled = copies
    fold = changed / "_fold" / "fold.py"
    fold.write_text(fold.read_text().replace("measures.get(name, 0) + sign", "measures.get(name, 0) - sign"))
    (renamed / "_fold" / "fold.py").rename(renamed / "_fold" / "folds.py")
    (compiled / "_fold" / "fold.pyc").write_bytes(b"\0")

    assert code_digest(same) == code_digest(_RUNTIME) == code_digest(compiled)
    assert len({code_digest(copy) for copy in (same, changed, renamed)}) == 3
