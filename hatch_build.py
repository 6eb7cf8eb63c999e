"""Puts a bill of materials into the wheel: the packages it needs, as locked, and the files it brings along.

https://cyclonedx.org/docs/1.6/json, inside as https://peps.python.org/pep-0770 says. The standard library only, and
nothing of the time or the machine: two builds are byte-identical.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_VENDORED: Final = "uplot"
_VENDORED_IN: Final = "cdk_dynamodb_counters/page"
_FOLDERS: Final = ("infra", "lambdas")


class BillOfMaterials(BuildHookInterface[Any]):
    """Adds the bill to the wheel's metadata."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the bill, but for an editable install."""
        if version == "standard":
            self._directory = tempfile.TemporaryDirectory()
            path = Path(self._directory.name, f"{self.metadata.name}.cdx.json")
            path.write_text(json.dumps(bill(Path(self.root)), indent=2) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was written."""
        if version == "standard":
            self._directory.cleanup()


def bill(root: Path) -> dict[str, Any]:
    """Return the bill of materials of the distribution in a folder of the project."""
    project = _project(root)
    lock = _locked((root.parent / "requirements.txt").read_text(encoding="utf-8"))
    direct = {_normalized(text) for text in project["dependencies"]}
    siblings = {each["name"]: each for folder in _FOLDERS if (each := _project(root.parent / folder)) != project}
    wanted = {project["name"]: direct}
    for name in direct & siblings.keys():
        # A distribution of this repository, with the extra that it is needed with.
        asked = next(text for text in project["dependencies"] if _normalized(text) == name)
        extra = siblings[name]["optional-dependencies"].get("".join(re.findall(r"\[(\w+)\]", asked)), [])
        wanted[name] = {_normalized(text) for text in (*siblings[name]["dependencies"], *extra)}
    own = wanted.keys() - {project["name"]}
    locked = _closure(set().union(*wanted.values()) - own, lock)
    references = {name: f"pkg:pypi/{name}@{version}" for name, (version, _) in locked.items()}
    references |= {name: f"pkg:pypi/{name}@{siblings[name]['version']}" for name in own}
    references[project["name"]] = f"pkg:pypi/{project['name']}@{project['version']}"
    versions = {name: version for name, (version, _) in locked.items()} | {
        name: siblings[name]["version"] for name in own
    }
    needs = {name: sorted(references[each] for each in names) for name, names in wanted.items()}
    needs |= {name: sorted(references[each] for each, (_, by) in locked.items() if name in by) for name in locked}
    components = [_component("library", name, versions[name], references[name]) for name in sorted(versions)]
    if (root / _VENDORED_IN).is_dir():
        script = json.loads((root.parent / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        components.append(_vendored(script[f"node_modules/{_VENDORED}"]))
        needs[project["name"]].append(components[-1]["bom-ref"])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                **_component("library", project["name"], project["version"], references[project["name"]]),
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": references[name], "dependsOn": needs[name]} for name in sorted(needs)]
        + [{"ref": each["bom-ref"], "dependsOn": []} for each in components if each["name"] == _VENDORED],
    }


def _project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def _component(kind: str, name: str, version: str, url: str) -> dict[str, Any]:
    return {"type": kind, "bom-ref": url, "name": name, "version": version, "purl": url}


def _vendored(locked: dict[str, Any]) -> dict[str, Any]:
    algorithm, _, digest = locked["integrity"].partition("-")
    assert algorithm == "sha512"
    version = locked["version"]
    return {
        **_component("library", _VENDORED, version, f"pkg:npm/{_VENDORED}@{version}"),
        "description": "In cdk_dynamodb_counters/page, for the live page",
        "hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}],
        "licenses": [{"license": {"id": locked["license"]}}],
    }


def _locked(lock: str) -> dict[str, tuple[str, set[str]]]:
    """Each locked package's version, and what brings it along."""
    found: dict[str, tuple[str, set[str]]] = {}
    by: set[str] = set()
    for line in lock.splitlines():
        if pinned := re.match(r"([\w.-]+)==(\S+)", line):
            by = set()
            found[_normalized(pinned[1])] = pinned[2], by
        elif comment := re.match(r" +# +(?:via +)?([\w.-]+)$", line):
            by.add(_normalized(comment[1]))
    return found


def _closure(names: set[str], lock: dict[str, tuple[str, set[str]]]) -> dict[str, tuple[str, set[str]]]:
    """Return what packages need, and what that needs in turn."""
    found = set(names)
    while more := {name for name, (_, by) in lock.items() if by & found} - found:
        found |= more
    return {name: lock[name] for name in found}


def _normalized(requirement: str) -> str:
    """Return the name of a requirement.

    https://packaging.python.org/en/latest/specifications/name-normalization
    """
    return re.sub(r"[-_.]+", "-", re.split(r"[ <>=!~;\[]", requirement, maxsplit=1)[0]).lower()
