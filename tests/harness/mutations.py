"""Switches each safety mechanism off in turn and shows which test notices: ``python -m tests.harness.mutations``.

A mutation is an edit of a copy of ``lambdas``. One whose text is not found any more is an error: the table must not
claim what it has not tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_RUNTIME: Final = Path("lambdas/dynamodb_counters")
_TIMEOUT_SECONDS: Final = 600
_IGNORED: Final = shutil.ignore_patterns("__pycache__", "*.pyc")

CAUGHT: Final = "caught"

_SCHEDULES: Final = "test_schedules.py::test_every_count_is_exact_whatever_goes_wrong"
_MECHANISMS: Final = "test_mechanisms.py::"

_KEEP: Final = """\
        kept = self._quarantine.keep(shard, folded.unfoldable)
"""
_COMMIT: Final = """\
        committer = Committer(self._table, shard, self._quarantine, time_left)
        done = committer.commit(folded.deltas, lambda floors: self._plan.fold(records, floors, known).deltas)
"""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mechanism, how to switch it off, and what must notice.

    Parameters
    ----------
    name : str
        What is switched off.
    file : str
        Where, below ``lambdas/dynamodb_counters``.
    old, new : str
        The text that stands there exactly once, and what replaces it.
    test : str
        The test that must fail, below ``tests/exactly_once``.
    """

    name: str
    file: str
    old: str
    new: str
    test: str = _SCHEDULES


MUTATIONS: Final = (
    Mutation(
        "the condition on the watermark is dropped",
        "store/commit.py",
        '        update.require_unset_or_below(self._watermark, {"S": delta.first})\n',
        "",
    ),
    Mutation(
        "the condition looks at the last record, not the first",
        "store/commit.py",
        'require_unset_or_below(self._watermark, {"S": delta.first})',
        'require_unset_or_below(self._watermark, {"S": delta.last})',
    ),
    Mutation(
        "the watermark moves to the first record, not the last",
        "store/commit.py",
        "watermark(delta.last, self._hour)",
        "watermark(delta.first, self._hour)",
    ),
    Mutation(
        "nothing is written after a refusal",
        "store/commit.py",
        "deltas = refold(floors) if floors else []",
        "deltas = []",
    ),
    Mutation(
        "what was applied is not left out after a refusal",
        "fold.py",
        "sequence <= floors.get(origin, sequence)",
        "origin not in floors",
    ),
    Mutation(
        "a refusal counts as done although records remain",
        "store/commit.py",
        "elif answer.reached >= delta.last:",
        "elif answer.reached:",
    ),
    Mutation(
        "sequence numbers are compared as text of any length",
        "records.py",
        "return sequence.zfill(SEQUENCE_DIGITS)",
        "return sequence.ljust(SEQUENCE_DIGITS)",
    ),
    Mutation(
        "a sum of zero is not written",
        "store/commit.py",
        "        while deltas:\n",
        "        deltas = [delta for delta in deltas if any(delta.measures.values())]\n        while deltas:\n",
    ),
    Mutation(
        "one watermark for all shards",
        "store/watermarks.py",
        'return WATERMARK_PREFIX + shard.removeprefix(_SHARD_PREFIX).lstrip("0")',
        "return WATERMARK_PREFIX + shard[:0]",
    ),
    Mutation(
        "failed writes are passed over",
        "store/commit.py",
        "        if failures:\n            raise CommitError(failures)\n",
        "",
    ),
    Mutation(
        "values are not escaped",
        "keys.py",
        'return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text) or EMPTY',
        "return text or EMPTY",
    ),
    Mutation(
        "a deletion by TTL counts as one by a user",
        "records.py",
        'return identity.get("type") == "Service" and identity.get("principalId") == _TTL_PRINCIPAL',
        "return bool(identity) and False",
    ),
    Mutation(
        "a deletion by TTL is never subtracted",
        "compiler.py",
        'self.keeps_expired = declaration.on_expiry == "keep"',
        "self.keeps_expired = True",
    ),
    Mutation(
        "a correction does not take back the old contribution",
        "fold.py",
        "                    _add(deltas, -1, minus, sequence, floors)\n",
        "                    pass\n",
    ),
    Mutation(
        "quarantine comes after the commit",
        "aggregator.py",
        _KEEP + _COMMIT,
        _COMMIT + _KEEP,
        _MECHANISMS + "test_a_record_is_in_quarantine_before_anything_after_it_is_counted",
    ),
    Mutation(
        "what quarantine holds is counted all the same",
        "store/quarantine.py",
        "self._known[shard] = self._places(shard)",
        "self._known[shard] = frozenset()",
        _MECHANISMS + "test_what_a_deployment_before_could_not_fold_is_left_to_its_quarantine",
    ),
    Mutation(
        "a deployment that was taken over goes on quarantining",
        "store/quarantine.py",
        'f"{_DEPLOYMENT} = :deployment"',
        'f"{_DEPLOYMENT} <> :deployment OR {_DEPLOYMENT} = :deployment"',
        _MECHANISMS + "test_a_deployment_that_was_taken_over_quarantines_nothing_more",
    ),
    Mutation(
        "what a transaction has counted is counted again",
        "fold.py",
        'if record.get("eventName") == "INSERT":',
        "if False:",
        _MECHANISMS + "test_what_a_transaction_has_counted_is_only_corrected_and_taken_back",
    ),
    Mutation(
        "a redrive can be repeated",
        "store/quarantine.py",
        'ConditionExpression="#state = :waiting"',
        'ConditionExpression="#state = :waiting OR #state = :released"',
        _MECHANISMS + "test_a_redrive_counts_once_however_often_it_is_asked_for",
    ),
    Mutation(
        "watermarks are forgotten while their shard can still deliver",
        "store/watermarks.py",
        "KEPT_HOURS: Final = STREAM_RETENTION_HOURS + 6",
        "KEPT_HOURS: Final = STREAM_RETENTION_HOURS",
        _MECHANISMS + "test_a_watermark_outlives_every_redelivery_there_can_be",
    ),
    Mutation(
        "a reset deletes the group's item",
        "store/record.py",
        'before.append(answer["Attributes"])',
        'before.append(answer["Attributes"]) or table.client.delete_item(TableName=table.name, Key=key)',
        _MECHANISMS + "test_a_reset_does_not_forget_what_was_counted",
    ),
    Mutation(
        "numbers are rounded to 28 digits on their way",
        "store/items.py",
        'return {"N": format_number(value)}',
        'return {"N": str(value) if isinstance(value, int) else str(value.normalize())}',
    ),
)


def mutate(mutation: Mutation, root: Path) -> None:
    """Apply a mutation to a copy of the project.

    Parameters
    ----------
    mutation : Mutation
        What to switch off.
    root : Path
        The copy.

    Raises
    ------
    LookupError
        The text is not there, or not only once.
    """
    file = root / _RUNTIME / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise LookupError(f"{mutation.name}: {mutation.file} has {text.count(mutation.old)} times {mutation.old!r}")
    file.write_text(text.replace(mutation.old, mutation.new))


def run(mutation: Mutation | None) -> str:
    """Run the test that must notice a mutation.

    Parameters
    ----------
    mutation : Mutation or None
        What to switch off; None runs all those tests on the runtime as it is.

    Returns
    -------
    str
        What was noticed after `CAUGHT`, ``SURVIVED``, or an error.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("lambdas", "tests"):
            shutil.copytree(_ROOT / name, root / name, ignore=_IGNORED)
        shutil.copy(_ROOT / "pyproject.toml", root)
        if mutation is not None:
            try:
                mutate(mutation, root)
            except LookupError as error:
                return f"ERROR: {error}"
        tests = [mutation.test] if mutation is not None else sorted({m.test for m in MUTATIONS})
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        command += [f"tests/exactly_once/{test}" for test in tests]
        # The tests must import the copy, not what this process was started with.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        try:
            done = subprocess.run(
                command,
                cwd=root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "ERROR: the test does not end"
    if done.returncode == 1:
        # The first line of the failure tells what was noticed.
        told = re.search(r"^E +(?:[\w.]+: )?(.*)$", done.stdout, re.MULTILINE)
        return f"{CAUGHT}: {told[1]}" if told else f"ERROR: {done.stdout[-500:]}"
    return "SURVIVED" if done.returncode == 0 else f"ERROR: {done.stdout[-500:]}{done.stderr[-500:]}"


def table(results: Iterable[tuple[Mutation, str]]) -> str:
    """Write the results as a Markdown table.

    Parameters
    ----------
    results : iterable of (Mutation, str)
        Mutations, and what became of them.

    Returns
    -------
    str
        A line each.
    """
    rows = [f"| {mutation.name} | `{mutation.test}` | {result} |" for mutation, result in results]
    return "\n".join(["| mutation | caught by | result |", "|---|---|---|", *rows])


def main() -> int:
    """Run from the command line; arguments are parts of the names of mutations.

    Returns
    -------
    int
        1 if a mutation survived or could not be tried.
    """
    wanted = [m for m in MUTATIONS if not sys.argv[1:] or any(part in m.name for part in sys.argv[1:])]
    unbroken = run(None)
    if unbroken != "SURVIVED":
        print(f"the tests do not pass on the runtime as it is: {unbroken}")
        return 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(zip(wanted, pool.map(run, wanted), strict=True))
    print(table(results))
    return 0 if all(result.startswith(CAUGHT) for _, result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
