"""The runtime's safety mechanisms: how to switch each one off, and which test must notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SCHEDULES: Final = "test_schedules.py::test_every_count_is_exact_whatever_goes_wrong"
_MECHANISMS: Final = "test_mechanisms.py::"
_LIMITS: Final = "test_limits.py"
_LOST_ANSWERS: Final = "test_lost_answers.py"

_KEEP: Final = """\
        kept = self._quarantine.keep(shard, [*batch.unreadable, *folded.unfoldable])
"""
_COMMIT: Final = """\
        committer = Committer(self._table, shard, self._quarantine, time_left)
        done = committer.commit(
            folded.deltas,
            lambda applied_through: fold(self._plan, batch.changes, applied_through, quarantined).deltas,
        )
"""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mechanism, the text in a file of the runtime that switches it off, and the test that must notice."""

    name: str
    file: str
    old: str
    new: str
    test: str = _SCHEDULES


MUTATIONS: Final = (
    Mutation(
        "the condition on the watermark is dropped",
        "_stream/commit.py",
        '        update.require_unset_or_below(self._watermark, {"S": delta.first})\n',
        "",
    ),
    Mutation(
        "the condition looks at the last record, not the first",
        "_stream/commit.py",
        'require_unset_or_below(self._watermark, {"S": delta.first})',
        'require_unset_or_below(self._watermark, {"S": delta.last})',
    ),
    Mutation(
        "the watermark moves to the first record, not the last",
        "_stream/commit.py",
        "watermark(delta.last, self._hour)",
        "watermark(delta.first, self._hour)",
    ),
    Mutation(
        "nothing is written after a refusal",
        "_stream/commit.py",
        "deltas = refold(applied_through) if applied_through else []",
        "deltas = []",
    ),
    Mutation(
        "what was applied is not left out after a refusal",
        "_fold/fold.py",
        "sequence <= applied_through.get(ref, sequence)",
        "ref not in applied_through",
    ),
    Mutation(
        "a refusal counts as done although records remain",
        "_stream/commit.py",
        "elif answer.applied_through >= delta.last:",
        "elif answer.applied_through:",
    ),
    Mutation(
        "sequence numbers are compared as text of any length",
        "_fold/records.py",
        "return sequence.zfill(SEQUENCE_DIGITS)",
        "return sequence.ljust(SEQUENCE_DIGITS)",
    ),
    Mutation(
        "a sum of zero is not written",
        "_stream/commit.py",
        "        while deltas:\n",
        "        while deltas := [delta for delta in deltas if any(delta.measures.values())]:\n",
    ),
    Mutation(
        "one watermark for all shards",
        "_stream/watermarks.py",
        'return WATERMARK_PREFIX + shard.removeprefix(_SHARD_PREFIX).lstrip("0")',
        "return WATERMARK_PREFIX + shard[:0]",
    ),
    Mutation(
        "failed writes are passed over",
        "_stream/commit.py",
        "        if failures:\n            raise CommitError(failures)\n",
        "",
    ),
    Mutation(
        "values are not escaped",
        "_items/escaping.py",
        'return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text) or EMPTY',
        "return text or EMPTY",
    ),
    Mutation(
        "a deletion by TTL counts as one by a user",
        "_fold/fold.py",
        "expired = image_name == OLD and is_expiry(change.record)",
        "expired = False",
    ),
    Mutation(
        "a deletion by the TTL of another Region counts as one by a user",
        "_fold/records.py",
        "and 0 <= created - float(expires_at) < MAX_TTL_AGE",
        "and False",
    ),
    Mutation(
        "a group's text has no limit",
        "_fold/contributions.py",
        "MAX_GROUP_BYTES: Final = 8192",
        "MAX_GROUP_BYTES: Final = 1_000_000",
        _LIMITS,
    ),
    Mutation(
        "the groups of an item have no limit",
        "_fold/contributions.py",
        "(found := prod(map(len, choices))) > most",
        "(found := prod(map(len, choices))) < 0",
        _LIMITS,
    ),
    Mutation(
        "a request that is sent again is taken for a new one",
        "_writes/nonces.py",
        """{' OR '.join(_KNOWN)}""",
        "#c0 = :none",
        _LOST_ANSWERS,
    ),
    Mutation(
        "a request that is sent again is not looked for beyond the nonces kept",
        "_writes/nonces.py",
        "'=' if place < _LATER else '>='",
        "'='",
        _LOST_ANSWERS,
    ),
    Mutation(
        "two resets subtract the same",
        "_writes/increments.py",
        '"attribute_not_exists(#r)",',
        '"attribute_exists(#r) OR attribute_not_exists(#r)",',
        _LOST_ANSWERS,
    ),
    Mutation(
        "a deletion by TTL is never subtracted",
        "_fold/plan.py",
        'keeps_expired=declaration.on_expiry == "keep"',
        "keeps_expired=True",
    ),
    Mutation(
        "a correction does not take back the old contribution",
        "_fold/fold.py",
        "            self._add_to_deltas(-1, minus, change.sequence)\n",
        "            pass\n",
    ),
    Mutation(
        "quarantine comes after the commit",
        "_stream/batch.py",
        _KEEP + _COMMIT,
        _COMMIT + _KEEP,
        _MECHANISMS + "test_a_record_is_in_quarantine_before_anything_after_it_is_counted",
    ),
    Mutation(
        "what quarantine holds is counted all the same",
        "_stream/quarantine.py",
        "self._quarantined[shard] = self._read_entry_ids(shard)",
        "self._quarantined[shard] = frozenset()",
        _MECHANISMS + "test_what_a_deployment_before_could_not_fold_is_left_to_its_quarantine",
    ),
    Mutation(
        "a deployment that was taken over goes on quarantining",
        "_stream/quarantine.py",
        'f"{_DEPLOYMENT} = :deployment"',
        'f"{_DEPLOYMENT} <> :deployment OR {_DEPLOYMENT} = :deployment"',
        _MECHANISMS + "test_a_deployment_that_was_taken_over_quarantines_nothing_more",
    ),
    Mutation(
        "what a transaction has counted is counted again",
        "_fold/fold.py",
        'if change.record.get("eventName") == "INSERT":',
        "if False:",
        _MECHANISMS + "test_what_a_transaction_has_counted_is_only_corrected_and_taken_back",
    ),
    Mutation(
        "a redrive can be repeated",
        "_stream/redrive.py",
        'ConditionExpression="#state = :waiting"',
        'ConditionExpression="#state = :waiting OR #state = :redriven"',
        _MECHANISMS + "test_a_redrive_counts_once_however_often_it_is_asked_for",
    ),
    Mutation(
        "watermarks are forgotten while their shard can still deliver",
        "_stream/watermarks.py",
        "KEPT_HOURS: Final = STREAM_RETENTION_HOURS + 6",
        "KEPT_HOURS: Final = STREAM_RETENTION_HOURS",
        _MECHANISMS + "test_a_watermark_outlives_every_redelivery_there_can_be",
    ),
    Mutation(
        "a reset deletes the group's item",
        "_writes/increments.py",
        "taken = [_take(table, key, measures) for key in group_keys(aggregate, values)]",
        "taken = [table.client.delete_item(TableName=table.name, Key=key, ReturnValues='ALL_OLD')['Attributes']"
        " for key in group_keys(aggregate, values)]",
        _MECHANISMS + "test_a_reset_does_not_forget_what_was_counted",
    ),
    Mutation(
        "numbers are rounded to 28 digits on their way",
        "_items/decimals.py",
        'return {"N": format_number(value)}',
        'return {"N": str(value) if isinstance(value, int) else str(value.normalize())}',
    ),
)
