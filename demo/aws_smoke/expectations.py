"""Expected and found values: the program's result."""

from __future__ import annotations

from dataclasses import dataclass, field

from demo.terminal import Progress, printable


@dataclass
class Expectations:
    """Checks that were made, those that differed, and those that could not be made where it ran."""

    progress: Progress
    met: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def check(self, what: str, expected: object, found: object) -> None:
        if found == expected:
            self.met.append(what)
            self.progress(f"as expected: {what}: {printable(str(found))}")
        else:
            self.differences.append(f"{what}: expected {expected}, found {found}")
            self.progress(f"DIFFERS: {what}: expected {printable(str(expected))}, found {printable(str(found))}")

    def skip(self, what: str, reason: str) -> None:
        self.skipped.append(f"{what}: {reason}")
        self.progress(f"skipped: {what}: {reason}")

    def summary(self) -> str:
        """All of it as lines; what differs from the emulator is what differs from the expectation."""
        lines = [f"{len(self.met)} as expected, {len(self.differences)} differ, {len(self.skipped)} skipped"]
        lines += (f"  differs: {one}" for one in self.differences)
        lines += (f"  skipped: {one}" for one in self.skipped)
        return "\n".join(lines)
