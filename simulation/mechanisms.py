"""The runtime's safety mechanisms: how to switch each one off, and which test must notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SCHEDULES: Final = "test_schedules.py::test_every_count_is_exact_whatever_goes_wrong"
_MECHANISMS: Final = "test_mechanisms.py::"
_LIMITS: Final = "test_limits.py"
_LOST_ANSWERS: Final = "test_lost_answers.py"
_CHECKPOINTS: Final = "test_checkpoints.py::"
_ZOMBIE: Final = _CHECKPOINTS + "test_no_zombie_however_late_meets_a_pruned_watermark"

_KEEP: Final = """\
        kept = self._quarantine.keep(shard, [*batch.unreadable, *doubtful, *folded.unfoldable])
"""
_WATERMARK: Final = """\
        watermark = Watermark(shard, old_format=checkpoint.old_format, now=self._table.clock())
"""
_COMMIT: Final = """\
        done = Committer(self._table, watermark, self._quarantine, self._pruner, time_left).commit(
            folded.deltas,
            lambda applied_through: fold(self._plan, changes, applied_through, quarantined).deltas,
        )
"""
_MOVE: Final = """\
        last, touched = padded(records[-1]["dynamodb"]["SequenceNumber"]), len(folded.deltas) + kept
        units = 0.0
        if time_left() >= RESERVE_SECONDS:
            units = self._checkpoints.committed(shard, last, touched - done.skipped, self._deadline(time_left))
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
        "        update.require_unset_or_below(self._watermark.name, self._watermark.bound(delta.first))\n",
        "",
    ),
    Mutation(
        "the condition looks at the last record, not the first",
        "_stream/commit.py",
        "self._watermark.bound(delta.first)",
        "self._watermark.bound(delta.last)",
    ),
    Mutation(
        "the watermark moves to the first record, not the last",
        "_stream/commit.py",
        "self._watermark.value(delta.last)",
        "self._watermark.value(delta.first)",
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
        "self.name = WATERMARK_PREFIX + shard_digest(shard)",
        'self.name = WATERMARK_PREFIX + shard_digest("")',
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
        _KEEP + _WATERMARK + _COMMIT,
        _WATERMARK + _COMMIT + _KEEP,
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
        "the checkpoint is not read",
        "_stream/batch.py",
        "fresh = _after(checkpoint.applied_through, records)",
        "fresh = records",
        _ZOMBIE,
    ),
    Mutation(
        "what a process has read of a checkpoint holds for ever",
        "_stream/checkpoints.py",
        "read_at + FRESH <= now",
        "read_at + FRESH * 1440 <= now",
        _ZOMBIE,
    ),
    Mutation(
        "the checkpoint moves before the last item is committed",
        "_stream/batch.py",
        _COMMIT + _MOVE,
        _MOVE + _COMMIT,
        _CHECKPOINTS + "test_a_checkpoint_moves_after_the_last_item_is_committed",
    ),
    Mutation(
        "the checkpoint moves back",
        "_stream/checkpoints.py",
        "applied_through < :applied_through",
        "applied_through <> :applied_through",
        _CHECKPOINTS + "test_a_checkpoint_never_moves_back",
    ),
    Mutation(
        "a checkpoint settles within the longest invocation",
        "_stream/checkpoint_items.py",
        "SETTLED_AFTER: Final = LONGEST_INVOCATION + FRESH + SKEW",
        "SETTLED_AFTER: Final = FRESH + SKEW",
        _ZOMBIE,
    ),
    Mutation(
        "a checkpoint settles regardless of clocks and late requests",
        "_stream/checkpoint_items.py",
        "SETTLED_AFTER: Final = LONGEST_INVOCATION + FRESH + SKEW",
        "SETTLED_AFTER: Final = LONGEST_INVOCATION + FRESH",
        _ZOMBIE,
    ),
    Mutation(
        "a checkpoint is stamped by the writer's clock, not its deadline",
        "_stream/batch.py",
        "return self._table.clock() + min(time_left(), LONGEST_INVOCATION)",
        "return self._table.clock()",
        _ZOMBIE,
    ),
    Mutation(
        "a checkpoint is stamped by when its shard was first touched",
        "_stream/checkpoints.py",
        '"at": deadline, "seen"',
        '"at": found.seen, "seen"',
        _ZOMBIE,
    ),
    Mutation(
        "watermarks are pruned at a checkpoint that has not settled",
        "_stream/checkpoints.py",
        "= found.settled_through(now), now",
        "= found.applied_through, now",
        _ZOMBIE,
    ),
    Mutation(
        "the mark is replaced before it has settled",
        "_stream/checkpoints.py",
        "if not found.mark or settled != found.settled:",
        "if last:",
        _CHECKPOINTS + "test_a_busy_shard_settles_although_its_checkpoint_never_stands_still",
    ),
    Mutation(
        "watermarks are pruned without condition",
        "_stream/pruning.py",
        'f"#w{index} = :w{index}" for',
        'f"(#w{index} = :w{index} OR attribute_exists(#w{index}))" for',
        _CHECKPOINTS + "test_a_watermark_that_has_moved_is_not_pruned",
    ),
    Mutation(
        "the witness of a lost checkpoint is not asked",
        "_stream/checkpoints.py",
        'lost = witness["moved"]["BOOL"]',
        "lost = False",
        _CHECKPOINTS + "test_what_may_have_been_counted_before_a_checkpoint_was_lost_is_not_counted_again",
    ),
    Mutation(
        "no witness is left when a checkpoint moves",
        "_stream/checkpoints.py",
        "if not found.applied_through:",
        "if False:",
        _CHECKPOINTS + "test_what_may_have_been_counted_before_a_checkpoint_was_lost_is_not_counted_again",
    ),
    Mutation(
        "a lost checkpoint comes back when it is moved",
        "_stream/checkpoints.py",
        'f"attribute_exists({PK}) AND ({_FORWARD})"',
        "_FORWARD",
        _CHECKPOINTS + "test_a_lost_checkpoint_does_not_come_back_by_chance",
    ),
    Mutation(
        "two shards of one digest are not told apart",
        "_stream/checkpoints.py",
        'if item["shard"]["S"] != shard:',
        "if False:",
        _CHECKPOINTS + "test_two_shards_of_one_digest_are_told",
    ),
    Mutation(
        "the version before is forgotten",
        "_stream/upgrade.py",
        'return "Item" in answer or',
        "return False and",
        _CHECKPOINTS + "test_a_zombie_of_the_old_version_and_the_new_version_count_once",
    ),
    Mutation(
        "the version before is remembered only by the shards it has written to",
        "_stream/upgrade.py",
        "may_run_until = _first_met(table) + STILL_RUNNING",
        "may_run_until = 0",
        _CHECKPOINTS + "test_a_zombie_of_the_old_version_and_the_new_version_count_once",
    ),
    Mutation(
        "watermarks of the version before go while their records can still come",
        "_stream/pruning.py",
        "_OLD_FORMAT_HOURS: Final = (GUARANTEE + DAY) // HOUR",
        "_OLD_FORMAT_HOURS: Final = 24",
        _CHECKPOINTS + "test_a_watermark_of_the_old_version_stays_as_long_as_its_records_may_come",
    ),
    Mutation(
        "records older than the guarantee are counted",
        "_stream/batch.py",
        "created_before = max(self._table.clock() - GUARANTEE, checkpoint.lost_before)",
        "created_before = checkpoint.lost_before",
        _CHECKPOINTS + "test_a_record_older_than_the_guarantee_is_not_counted",
    ),
    Mutation(
        "a shard that wakes up does not say so",
        "_stream/checkpoints.py",
        "if found.seen + ALIVE < now:",
        "if False:",
        _CHECKPOINTS + "test_a_silent_shard_says_that_it_lives_before_it_counts",
    ),
    Mutation(
        "a shard is taken for silent by an old copy of its checkpoint",
        "_stream/checkpoints.py",
        "if found.seen + OUTLIVED < now and self._is_silent(digest, now):",
        "if found.seen + OUTLIVED < now:",
        _CHECKPOINTS + "test_a_shard_is_not_taken_for_silent_by_an_old_copy_of_its_checkpoint",
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
