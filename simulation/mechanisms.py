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

_TAKEOVERS: Final = "test_takeovers.py::"
_CONTENTION: Final = "test_contention.py"
_PACKED: Final = "test_packed.py::"

_KEEP: Final = "                kept = self._keep(shard, [*unfoldable, *folded.unfoldable], checkpoint, report)\n"
_COMMIT: Final = "                done = self._committer.commit(folded.deltas, part)\n"
_MOVE: Final = "                self._checkpoints.advance(shard, counted[-1].sequence, deadline)\n"


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
        "    update.require_unset_or_below(watermark.name, watermark.bound(delta.first))\n",
        "",
    ),
    Mutation(
        "the condition looks at the last record, not the first",
        "_stream/commit.py",
        "watermark.bound(delta.first)",
        "watermark.bound(delta.last)",
    ),
    Mutation(
        "the watermark moves to the first record, not the last",
        "_stream/commit.py",
        "watermark.value(delta.last)",
        "watermark.value(delta.first)",
    ),
    Mutation(
        "nothing is written after a refusal",
        "_stream/commit.py",
        "deltas = part.fold(applied_through) if applied_through else []",
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
        "            raise CommitError(list(failures.values()))\n",
        "            pass\n",
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
        "if image_name == OLD and is_expiry(change.record):",
        "if False:",
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
        'return Program(layout, contribute, declaration.on_expiry == "keep", by_columns)',
        "return Program(layout, contribute, True, by_columns)",
    ),
    Mutation(
        "a correction does not take back the old contribution",
        "_fold/fold.py",
        "            self._add_to_deltas(-1, minus, change.sequence)\n",
        "            pass\n",
    ),
    Mutation(
        "the checkpoint moves before what cannot be counted is in quarantine",
        "_stream/batch.py",
        _KEEP,
        _MOVE + _KEEP,
        _MECHANISMS + "test_a_checkpoint_moves_after_what_cannot_be_counted_is_in_quarantine",
    ),
    Mutation(
        "a record is folded by the declarations of whoever delivers it",
        "_stream/deployments.py",
        "plan = self._plan(era.deployment)",
        "plan = self._plan(self._id)",
        _TAKEOVERS + "test_a_batch_half_written_is_finished_by_the_declarations_it_was_begun_by",
    ),
    Mutation(
        "a deployment holds at once",
        "_stream/deployments.py",
        "math.ceil(deadline + FRESH + SKEW)",
        "math.ceil(self._table.clock())",
        _TAKEOVERS + "test_whoever_does_not_know_of_a_takeover_folds_nothing_that_comes_after_it",
    ),
    Mutation(
        "a deployment holds regardless of clocks and late requests",
        "_stream/deployments.py",
        "math.ceil(deadline + FRESH + SKEW)",
        "math.ceil(deadline + FRESH)",
        _TAKEOVERS + "test_whoever_does_not_know_of_a_takeover_folds_nothing_that_comes_after_it",
    ),
    Mutation(
        "what a process has read of the history holds for ever",
        "_stream/deployments.py",
        "self._read_at + FRESH > now",
        "self._read_at + FRESH * 1440 > now",
        _TAKEOVERS + "test_a_warm_process_learns_of_a_takeover",
    ),
    Mutation(
        "a takeover overwrites another",
        "_stream/deployments.py",
        'put["ConditionExpression"] = f"{HISTORY} = :seen"',
        'put["ConditionExpression"] = f"{HISTORY} = :seen OR attribute_exists({HISTORY})"',
        _TAKEOVERS + "test_two_takeovers_at_once_are_two_eras",
    ),
    Mutation(
        "a lost history is taken for none",
        "_stream/deployments.py",
        "lost = history is None and self._others_were_stored()",
        "lost = False",
        _TAKEOVERS + "test_a_lost_history_leaves_in_doubt_what_was_begun",
    ),
    Mutation(
        "declarations that cannot be read are replaced by one's own",
        "_stream/batch.py",
        "math.inf if is_unknown else created_before",
        "created_before",
        _TAKEOVERS + "test_a_lost_history_leaves_in_doubt_what_was_begun",
    ),
    Mutation(
        "groups are not known by the names of other deployments",
        "_stream/deployments.py",
        "Plan(declarations, known)",
        "Plan(declarations)",
        _TAKEOVERS + "test_an_aggregate_that_is_renamed_goes_on_counting_in_those_that_look_at_it",
    ),
    Mutation(
        "an image that one declaration cannot fold waits for all",
        "_fold/fold.py",
        "self._unfoldable(change, image_name, _reasons(failed), tuple(failed))",
        "self._unfoldable(change, image_name, _reasons(failed))",
        _MECHANISMS + "test_what_one_declaration_cannot_fold_waits_for_it_alone",
    ),
    Mutation(
        "a redrive counts for all declarations",
        "_stream/redrive.py",
        "names=frozenset(names_of(item)) or None",
        "names=None",
        _MECHANISMS + "test_what_one_declaration_cannot_fold_waits_for_it_alone",
    ),
    Mutation(
        "an older version's quarantine is not heeded",
        "_stream/quarantine.py",
        "elif image.names and NAMES not in there:",
        "elif False:",
        _CHECKPOINTS + "test_what_the_old_version_has_quarantined_no_declaration_counts",
    ),
    Mutation(
        "an older version goes on quarantining",
        "_stream/checkpoints.py",
        "take_token(self._table, shard)",
        "pass",
        _CHECKPOINTS + "test_the_old_version_can_quarantine_nothing_more",
    ),
    Mutation(
        "contention is not waited out",
        "_stream/retrying_client.py",
        "if not _may_pass(error):",
        "if True:",
        _CONTENTION,
    ),
    Mutation(
        "how far a failed batch came is not remembered",
        "_stream/commit.py",
        "        if failed:\n",
        "        if False:\n",
        _MECHANISMS + "test_a_batch_that_no_invocation_can_write_is_written_by_several",
    ),
    Mutation(
        "what is remembered of a failed batch is more than what was committed",
        "_stream/commit.py",
        "shard, last, ordered[failed].place",
        "shard, last, ordered[-1].place",
        _MECHANISMS + "test_a_batch_that_no_invocation_can_write_is_written_by_several",
    ),
    Mutation(
        "a watermark that somebody has spoiled stops its shard",
        "_stream/commit.py",
        "except UNREADABLE:",
        "except ZeroDivisionError:",
        _MECHANISMS + "test_an_item_whose_watermark_is_spoiled_stops_nothing",
    ),
    Mutation(
        "a checkpoint that somebody has spoiled is believed",
        "_stream/checkpoint_items.py",
        "if text and not is_sequence(text):",
        "if False:",
        _MECHANISMS + "test_a_spoiled_checkpoint_is_a_lost_one",
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
        "read_at + FRESH > now):",
        "read_at + FRESH * 1440 > now):",
        _ZOMBIE,
    ),
    Mutation(
        "the checkpoint moves before the last item is committed",
        "_stream/batch.py",
        _COMMIT,
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
        "self._client.deadline = self._clock() + min(time_left(), LONGEST_INVOCATION)",
        "self._clock()",
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
        'bool(item["moved"]["BOOL"])',
        "False",
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
        'found is not None and item["shard"]["S"] != shard:',
        "found is None:",
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
        "created_before = max(self._clock() - GUARANTEE, checkpoint.lost_before)",
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
    Mutation(
        "a chunk is put whether there is one or not",
        "_writes/chunk_log.py",
        'ConditionExpression=f"attribute_not_exists({PK})"',
        'ConditionExpression=f"attribute_not_exists({PK}) OR attribute_exists({PK})"',
        _PACKED + "test_a_chunk_overwrites_no_other",
    ),
    Mutation(
        "earlier chunks are not read",
        "_writes/chunk_log.py",
        "self.append([(self._identity.digest(row.values), row) for row in chunk.all_rows()])",
        "self.append([])",
        _PACKED + "test_an_event_of_an_earlier_chunk_is_a_duplicate_to_a_process_that_has_just_started",
    ),
    Mutation(
        "a writer that was refused does not look for its own batch id",
        "_writes/chunk_writes.py",
        ".get(number) == self._batch",
        '.get(number) == ""',
        _PACKED + "test_a_put_whose_answer_was_lost_is_known_by_its_batch_id",
    ),
    Mutation(
        "what was refused is put again as it was",
        "_writes/chunk_writes.py",
        "        self._decide_anew()\n        return is_mine\n",
        "        return is_mine\n",
        _PACKED + "test_what_others_have_put_meanwhile_is_decided_anew",
    ),
    Mutation(
        "after a refusal what is known is held to be the log",
        "_writes/chunk_writes.py",
        "is_mine = log.look(consistent=True).get(number) == self._batch",
        "is_mine = log.look(consistent=True) is not None",
        _PACKED + "test_what_others_have_put_meanwhile_is_decided_anew",
    ),
    Mutation(
        "the retraction of what is not known is answered from the cache",
        "_writes/chunk_writes.py",
        'return [Row("0" if entry.retracts else "+", entry.values)], False',
        'return [] if entry.retracts else [Row("+", entry.values)], False',
        _PACKED + "test_a_retraction_by_a_process_with_an_old_cache_finds_the_event",
    ),
    Mutation(
        "what is taken back is what the caller says",
        "_writes/chunk_writes.py",
        "before.rows[-1].values if before is not None else log.values(digest)",
        "entry.values",
        _PACKED + "test_what_is_taken_back_is_what_the_log_holds_not_what_the_caller_says",
    ),
    Mutation(
        "an event that was retracted can come again",
        "_writes/chunk_writes.py",
        "if before is None and place is None:",
        "if before is None and place in (None, GONE):",
        _PACKED + "test_an_event_that_was_retracted_stays_so",
    ),
    Mutation(
        "a gap in the numbers of chunks is not seen",
        "_writes/chunk_log.py",
        "return found | self.look(consistent=True)",
        "break",
        _PACKED + "test_a_bucket_with_a_hole_is_not_written",
    ),
    Mutation(
        "a bucket takes events until its chunks have expired",
        "_writes/packed_accept.py",
        "if last <= now:",
        "if last + _MARGIN <= now:",
        _PACKED + "test_a_bucket_takes_no_events_long_before_its_chunks_expire",
    ),
    Mutation(
        "the events of a chunk are counted again by a re-fold",
        "_fold/fold.py",
        "sequence <= applied_through.get(ref, sequence)",
        "ref not in applied_through",
        _PACKED + "test_a_chunk_that_was_counted_is_left_out_when_the_batch_is_folded_again",
    ),
    Mutation(
        "what a chunk takes back is counted",
        "_fold/chunk_fold.py",
        'found if row.sign == "+" else _negated(found)',
        "found",
        _PACKED + "test_what_is_taken_back_is_what_the_log_holds_not_what_the_caller_says",
    ),
    Mutation(
        "what a chunk takes back is counted, by columns",
        "_fold/chunk_contributions.py",
        "or chunk.signs or",
        "or",
        _PACKED + "test_what_is_taken_back_is_what_the_log_holds_not_what_the_caller_says",
    ),
    Mutation(
        "events are counted by columns and by rows",
        "_fold/chunk_fold.py",
        "        if found is None:\n            by_row.append(program)\n        else:\n",
        "        by_row.append(program)\n        if found is not None:\n",
        _PACKED + "test_events_count_the_same_by_columns_and_by_rows",
    ),
    Mutation(
        "two events of a chunk are one entry of the quarantine",
        "_fold/fold.py",
        'f"{image_name}#{row.index}"',
        "image_name",
        _PACKED + "test_each_event_of_a_chunk_that_cannot_be_folded_waits_on_its_own",
    ),
    Mutation(
        "values taken back are redriven as if they were accepted",
        "_fold/chunk_fold.py",
        'if (row.sign == "+") == (image_name == NEW):',
        "if image_name == NEW:",
        _PACKED + "test_values_taken_back_that_cannot_be_folded_are_redriven_as_such",
    ),
    Mutation(
        "a layout changes at once",
        "_layouts.py",
        "elif held and not (_extends(own, held) and _is_ahead(own, held, now + max(tolerance, own_tolerance))):",
        "elif held and False:",
        _PACKED + "test_a_layout_that_changes_without_a_date_is_refused",
    ),
)
