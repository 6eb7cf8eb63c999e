"""The runtime as Lambda code: its files and its dependencies, copied from where Python imports them."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Final

from aws_cdk import aws_lambda as lambda_

from dynamodb_counters.errors import InvalidArgumentError

_OWN: Final = "dynamodb-counters"
DISTRIBUTIONS: Final = {
    "aws_lambda_powertools": "aws-lambda-powertools",
    "counters_lambda": _OWN,
    "dynamodb_counters": _OWN,
    "fastjsonschema": "fastjsonschema",
    "jmespath": "jmespath",
    "typing_extensions": "typing_extensions",
}
"""The modules that an asset holds, and the distributions they are from."""

_PREFIX: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_PAGE: Final = Path(__file__).resolve().parent / "page"
_EXCLUDED: Final = (
    # These need distributions that the asset does not contain.
    *(
        PurePath("aws_lambda_powertools", "utilities", name)
        for name in ("auth_alpha", "data_masking", "kafka", "parser", "streaming", "validation")
    ),
    *(PurePath("dynamodb_counters", name) for name in ("testing", "_pytest_plugin.py")),
)


def runtime_code(*, prefix: str = "") -> lambda_.Code:
    """Return the runtime as code for a function or layer of your own: ours, AWS Lambda Powertools and what they need.

    The Python files are copied from the environment that runs synth: nothing is downloaded. If that has the functions'
    version of Python, 3.14, their bytecode is added, which cold starts would make. The asset hash depends only on file
    names and contents, so machines with the same versions produce the same hash.

    Parameters
    ----------
    prefix : str, optional
        Directory for the files, such as ``"python"`` for a layer. Default: the asset's root.

    Examples
    --------
    >>> code = runtime_code()
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise InvalidArgumentError("prefix", prefix, "a directory name such as 'python', or ''")
    return staged_code(prefix)


def staged_code(prefix: str = "", *, page: bool = False) -> lambda_.Code:
    """Return the runtime as Lambda code, below the directory ``prefix``; ``page`` adds the live page's files."""
    return lambda_.Code.from_asset(str(stage(prefix, page=page)))


@cache
def stage(prefix: str, *, page: bool = False) -> Path:
    """Copy the runtime's files into a temporary directory, below ``prefix``."""
    # CDK copies an asset when it is created, so this copy need not outlive the process.
    stage = Path(tempfile.mkdtemp(prefix="dynamodb-counters-"))
    atexit.register(shutil.rmtree, stage, ignore_errors=True)
    for source, name in (*runtime_files(), *licence_files(), *(_page_files() if page else ())):
        target = stage / prefix / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # A checkout with Windows line endings must give the same asset hash.
        target.write_bytes(source.read_bytes().replace(b"\r\n", b"\n"))
    if runtime().name == f"python{sys.version_info.major}.{sys.version_info.minor}":
        _compile(stage)
    # The asset hash leaves modes out, and Lambda reads files as another user: they must not depend on the umask.
    for path in (stage, *stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return stage


def runtime() -> lambda_.Runtime:
    return lambda_.Runtime.PYTHON_3_14


def _compile(stage: Path) -> None:
    # Lambda's code directory is read-only: each cold start would compile what it imports, for a third of its CPU time.
    # The files are named after the version of Python; others read the source, as all do where its hash has changed:
    # https://peps.python.org/pep-3147/, https://peps.python.org/pep-0552/
    # In a process of its own, the same source gives the same bytes.
    options = ("-q", "--invalidation-mode", "checked-hash", "-s", str(stage), "-p", "/")
    subprocess.run([sys.executable, "-I", "-m", "compileall", *options, str(stage)], check=True)


def _page_files() -> Iterator[tuple[Path, PurePath]]:
    for path in sorted(_PAGE.glob("[!.]*")):
        yield path, PurePath("counters_lambda", "page", path.name)


def runtime_files() -> Iterator[tuple[Path, PurePath]]:
    """Yield each file of the runtime and its dependencies with its path in the asset."""
    for module in DISTRIBUTIONS:
        origin = _origin(module)
        if origin.name != "__init__.py":
            yield origin, PurePath(origin.name)
            continue
        for path in sorted(origin.parent.rglob("*.py")):
            name = PurePath(module, path.relative_to(origin.parent))
            if not any(name.is_relative_to(excluded) for excluded in _EXCLUDED):
                yield path, name


def _origin(module: str) -> Path:
    if (spec := find_spec(module)) is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} is not installed, but the runtime asset needs it")
    return Path(spec.origin)


def licence_files() -> Iterator[tuple[Path, PurePath]]:
    """Yield the licence files of what the asset holds, each with its path there."""
    for name in dict.fromkeys(DISTRIBUTIONS.values()):
        try:
            package = distribution(name)
        except PackageNotFoundError:
            if name != _OWN:
                raise
            # A checkout, which need not be installed.
            yield _origin("dynamodb_counters").parents[1] / "LICENSE", PurePath("licenses", name, "LICENSE")
            continue
        listed = package.metadata.get_all("License-File") or ()
        for path in package.files or ():
            if any(path.parts[0].endswith(".dist-info") and PurePath(file).name == path.name for file in listed):
                yield Path(str(package.locate_file(path))), PurePath("licenses", name, path.name)
