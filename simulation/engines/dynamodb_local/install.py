"""DynamoDB Local's jars and native libraries, fetched once by Maven."""

from __future__ import annotations

from pathlib import Path

from simulation.engines import maven

POM = Path(__file__).parent / "pom.xml"
PROGRAM = "DynamoDB Local"


def find_java() -> str:
    """Find a Java that runs DynamoDB Local and, being a JDK, its launcher from source."""
    return maven.find_java(PROGRAM)


def installed_jars() -> Path:
    """Return the folder with all jars and native libraries of the pinned release, downloaded if missing."""
    return maven.installed_jars(PROGRAM, POM)
