"""The runtime as Lambda code: this package's and Powertools' own files, taken from where Python finds them."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Final

from aws_cdk import aws_lambda as lambda_

from dynamodb_counters.errors import InvalidArgumentError

_MODULES: Final = ("aws_lambda_powertools", "dynamodb_counters", "fastjsonschema", "jmespath", "typing_extensions")
_PAGE: Final = Path(__file__).resolve().parent / "page"
_PREFIX: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_LEFT_OUT: Final = tuple(
    # Powertools that cannot be imported without distributions which are not part of the asset.
    PurePath("aws_lambda_powertools", "utilities", name)
    for name in ("auth_alpha", "data_masking", "kafka", "parser", "streaming", "validation")
)


def runtime_code(*, prefix: str = "") -> lambda_.Code:
    """Give the runtime as code of a function or layer.

    Nothing is built or downloaded: the Python files are copied out of the environment that runs the synthesis. The
    asset's hash depends on their names and contents alone, so it is the same in every directory and on every machine
    with the same versions.

    Parameters
    ----------
    prefix : str, optional
        Directory to put them in, such as ``"python"`` for a layer. Default: none.

    Returns
    -------
    Code
        ``dynamodb_counters``, AWS Lambda Powertools and what that needs.

    Raises
    ------
    InvalidArgumentError
        The prefix is no directory name.

    Examples
    --------
    >>> code = runtime_code()
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise InvalidArgumentError("prefix", prefix, "a directory name such as 'python', or ''")
    return lambda_.Code.from_asset(str(_staged(prefix)))


def page_code() -> lambda_.Code:
    """Give the runtime with the files of the live page in it.

    Returns
    -------
    Code
        As of `runtime_code`, and the page with its chart library and that library's licence.
    """
    return lambda_.Code.from_asset(str(_staged("", page=True)))


@cache
def _staged(prefix: str, *, page: bool = False) -> Path:
    # CDK copies assets into its output directory when they are created; this copy lives as long as the process.
    stage = Path(tempfile.mkdtemp(prefix="dynamodb-counters-"))
    atexit.register(shutil.rmtree, stage, ignore_errors=True)
    for source, name in (*_files(), *(_page_files() if page else ())):
        target = stage / prefix / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # A checkout with Windows line ends is to give the same hash.
        target.write_bytes(source.read_bytes().replace(b"\r\n", b"\n"))
    return stage


def _page_files() -> Iterator[tuple[Path, PurePath]]:
    for path in sorted(_PAGE.iterdir()):
        if not path.name.startswith("."):
            yield path, PurePath("dynamodb_counters", "page", path.name)


def _files() -> Iterator[tuple[Path, PurePath]]:
    for module in _MODULES:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"{module} is not installed: it is part of the runtime asset")
        origin = Path(spec.origin)
        if spec.submodule_search_locations is None:
            yield origin, PurePath(origin.name)
            continue
        for path in sorted(origin.parent.rglob("*.py")):
            name = PurePath(module, path.relative_to(origin.parent))
            if not any(name.is_relative_to(left_out) for left_out in _LEFT_OUT):
                yield path, name
