"""Java programs that Maven fetches once, each pinned by a pom of its own."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from simulation.engines import EngineUnavailableError

CACHE = Path(__file__).parents[2] / ".cache"
MINIMUM_JAVA = 17
DOWNLOAD_SECONDS = 300


def find_java(program: str) -> str:
    """Find a JDK that runs a program, from source if need be."""
    needed = f"{program} needs a JDK {MINIMUM_JAVA} or newer (Debian: default-jdk-headless)"
    java = shutil.which("java")
    if java is None:
        raise EngineUnavailableError(f"{needed}: no java on the PATH")
    listing = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=60, check=False).stdout
    version = re.search(r"^java\.base@(\d+)", listing, re.MULTILINE)
    if version is None or int(version[1]) < MINIMUM_JAVA:
        raise EngineUnavailableError(f"{needed}: {java} is older")
    if "jdk.compiler@" not in listing:
        raise EngineUnavailableError(f"{needed}: {java} is a runtime without a compiler")
    return java


def installed_jars(program: str, pom: Path) -> Path:
    """Return the folder with all jars and native libraries that a pom names, downloaded if missing."""
    cache = CACHE / program.lower().replace(" ", "-")
    jars = cache / hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        # Only one process downloads.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _download(program, pom, jars)
    return jars


def _download(program: str, pom: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise EngineUnavailableError(f"{program} is downloaded by Maven (Debian: maven): no mvn on the PATH")
    # Renamed when complete, so that an interrupted download never passes for an installation.
    partial = jars.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired as expired:
        raise EngineUnavailableError(f"Maven took longer than {DOWNLOAD_SECONDS} s") from expired
    if done.returncode != 0:
        raise EngineUnavailableError(f"Maven could not download {program}:\n{done.stdout}{done.stderr}")
    partial.rename(jars)
