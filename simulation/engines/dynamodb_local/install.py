"""DynamoDB Local's jars and native libraries, fetched once by Maven."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from simulation.engines import EngineUnavailableError

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CACHE = HERE.parents[2] / ".cache" / "dynamodb-local"
MINIMUM_JAVA = 17
DOWNLOAD_SECONDS = 300


def find_java() -> str:
    """Find a Java that runs DynamoDB Local and, being a JDK, its launcher from source."""
    needed = f"DynamoDB Local needs a JDK {MINIMUM_JAVA} or newer (Debian: default-jdk-headless)"
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


def installed_jars() -> Path:
    """Return the folder with all jars and native libraries of the pinned release, downloaded if missing."""
    jars = CACHE / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        # Only one process downloads.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _download(jars)
    return jars


def _download(jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise EngineUnavailableError("DynamoDB Local is downloaded by Maven (Debian: maven): no mvn on the PATH")
    # Renamed when complete, so that an interrupted download never passes for an installation.
    partial = jars.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-B", "-q", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired as expired:
        raise EngineUnavailableError(f"Maven took longer than {DOWNLOAD_SECONDS} s") from expired
    if done.returncode != 0:
        raise EngineUnavailableError(f"Maven could not download DynamoDB Local:\n{done.stdout}{done.stderr}")
    partial.rename(jars)
