"""Builds the wheels of the last commit into dist, checks and uses them: `python -m scripts.release_check`.

With the tag of a release, such as `v0.1.0`, versions and changelog must be of that release. Nothing is published.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).resolve().parents[1]
_DIST: Final = _PROJECT / "dist"
_FOLDERS: Final = ("lambdas", "infra")
_IN_WHEEL: Final = re.compile(
    r"(cdk_dynamodb_counters|counters_cli|counters_lambda|dynamodb_counters|(cdk_)?dynamodb_counters-[^/]+\.dist-info)/"
)
_LEFT_BEHIND: Final = {"__pycache__", "examples", "node_modules", "tests"}
_COUNT: Final = """
from dynamodb_counters import Aggregate, Event
from dynamodb_counters.testing import counters_in_memory

VIEW = Event("view", key=("url", "time"), attributes={"url": str, "time": str})
VIEWS = Aggregate("views", VIEW, by="url")
with counters_in_memory([VIEWS]) as counters:
    counters.accept(VIEW, {"url": "/", "time": "10:00"})
    print(counters.get(VIEWS, url="/")["views"])
"""
_HEAD: Final = re.compile(r"(?m)^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?$")


class ReleaseError(Exception):
    """The files are not those of a release."""


def check_versions(version: str, changelog: str, tag: str | None) -> None:
    """Refuse a changelog or a tag of another version than the project's; a tag needs a changelog with its date."""
    head = _HEAD.search(changelog)
    title, date = head.groups() if head else (None, None)
    if tag is None and title == "Unreleased":
        return
    if title != version:
        raise ReleaseError(f"invalid head of CHANGELOG.md={title!r}: expected '## [{version}] - DATE'")
    if tag is not None and tag != f"v{version}":
        raise ReleaseError(f"invalid tag={tag!r}: expected 'v{version}', as the distributions say")
    if date is None:
        raise ReleaseError(f"invalid head of CHANGELOG.md={title!r}: expected a date, '## [{version}] - DATE'")


def strangers(names: Iterable[str], expected: re.Pattern[str]) -> list[str]:
    """Files that a distribution should not have."""
    return [name for name in names if not expected.match(name) or _LEFT_BEHIND & {*name.split("/")}]


def main(tag: str | None = None) -> None:
    """Build, check and use a release."""
    with tempfile.TemporaryDirectory() as text:
        place = Path(text)
        commit = _run(["git", "rev-parse", "--short", "HEAD"]).strip()
        first, second = _build(place / "first"), _build(place / "a second one")
        versions = {_version(first / folder) for folder in _FOLDERS}
        if len(versions) != 1:
            raise ReleaseError(f"invalid versions={sorted(versions)}: expected both distributions to have one")
        [version] = versions
        _say("versions", f"{version} of commit {commit}" + (f", tag {tag}" if tag else ", no tag"))
        check_versions(version, (first / "CHANGELOG.md").read_text(encoding="utf-8"), tag)
        files = sorted((first / "dist").iterdir())
        expected = [f"{name}-{version}-py3-none-any.whl" for name in ("cdk_dynamodb_counters", "dynamodb_counters")]
        if [file.name for file in files] != expected:
            raise ReleaseError(f"invalid files={[file.name for file in files]}: expected {expected}")
        for file in files:
            _check_bytes(file, second / "dist" / file.name)
            _check_names(file)
        _check_metadata(place, files)
        _use(place, files, version, first / "README.md")
        shutil.rmtree(_DIST, ignore_errors=True)
        shutil.copytree(first / "dist", _DIST)
    _say("done", f"dist has {' and '.join(file.name for file in files)}; nothing was published")


def _version(folder: Path) -> str:
    return str(tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def _build(root: Path) -> Path:
    """Build the wheels in an export of the last commit."""
    root.mkdir()
    _run(["git", "archive", "--output", str(root / "export.zip"), "HEAD"])
    shutil.unpack_archive(root / "export.zip", root)
    for folder in _FOLDERS:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(root / "dist")]
        _run([*command, str(root / folder)])
    return root


def _check_bytes(file: Path, again: Path) -> None:
    if file.read_bytes() != again.read_bytes():
        raise ReleaseError(f"invalid {file.name}: expected two builds of one commit to be byte-identical")
    _say(file.name, "two builds are byte-identical")


def _check_names(file: Path) -> None:
    with zipfile.ZipFile(file) as wheel:
        names = wheel.namelist()
    if others := strangers(names, _IN_WHEEL):
        raise ReleaseError(f"invalid {file.name}: expected no {', '.join(others[:5])}")
    parts = Counter(match[0] for match in map(_IN_WHEEL.match, names) if match)
    _say(file.name, f"{len(names)} files: {', '.join(f'{part} {count}' for part, count in sorted(parts.items()))}")


def _check_metadata(place: Path, files: list[Path]) -> None:
    python = _environment(place / "twine")
    _run([python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", "requirements-release.txt"])
    wide = os.environ | {"COLUMNS": "1000"}
    printed = _run([python, "-m", "twine", "check", "--strict", *map(str, files)], env=wide)
    for line in re.sub(r"\x1b\[\d*m", "", printed).splitlines():
        _say("twine", line.replace(f"{files[0].parent}/", ""))


def _use(place: Path, wheels: list[Path], version: str, readme: Path) -> None:
    """Use the library by itself, then install the constructs beside it and synthesize the app of the README."""
    python = _environment(place / "user")
    constructs, library = wheels
    _run([python, "-m", "pip", "install", "--quiet", f"{library}[cli,testing]"])
    printed = _run([str(Path(python).with_name("counters")), "--version"]).strip()
    if printed != f"counters, version {version}":
        raise ReleaseError(f"invalid answer of counters --version={printed!r}: expected version {version}")
    _say("library", f"counted {_run([python, '-I', '-c', _COUNT]).strip()} in memory, without Node and the CDK")
    # The newest packages that they allow.
    _run([python, "-m", "pip", "install", "--quiet", f"{library}[lambda]", str(constructs)])
    app = re.search(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    assert app is not None
    folder = place / "app"
    folder.mkdir()
    program = app[1].replace("App()", "App(outdir='out')")
    _run([python, "-I", "-c", program], cwd=folder, env=os.environ | {"CDK_VALIDATION": "false"})
    resources = (folder / "out" / "Blog.template.json").read_text(encoding="utf-8").count('"Type": "AWS::')
    _say("app of README.md", f"synthesized with the wheels in a new environment: {resources} resources")


def _environment(home: Path) -> str:
    _run([sys.executable, "-m", "venv", str(home)])
    return str(home / "bin" / "python")


def _run(command: list[str], cwd: Path = _PROJECT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)[:200]} failed: {(done.stderr + done.stdout).strip()[-2000:]}")
    return done.stdout


def _say(subject: str, text: str) -> None:
    print(f"release: {subject}: {text}", flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except ReleaseError as error:
        sys.exit(f"error: {error}")
