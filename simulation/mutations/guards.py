"""Generated mutations of safety mechanisms: a test must notice each of them.

`==` names a file of the runtime; then come changes of its functions, as `simulation.mutations.generated` calls them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final


def _names(text: str) -> Iterator[str]:
    file = ""
    for line in text.strip().split("\n"):
        function, _, changes = line.partition(": ")
        if changes:
            yield from (f"{file} {function}: {change}" for change in changes.split("; "))
        else:
            file = line.removeprefix("== ")


GUARDS: Final = frozenset(
    _names(r"""
== _backfill/backfill.py
Backfill._add: without yield from self._settle(plan)
Backfill._deltas: not delta.layout.is_gone(delta.group, now) → True
Backfill._try_to_open: without 'fresh'; without 'surplus'; without [each.name for each in names_to_fill(registry, sel…
Backfill._void: (changes := self._changes(registry, STALE)) → False
Dropping._chosen: each.name not in names and each.source.name in nam… → False
Dropping._chosen: without not registry.entries[each.source.name].dropped
Emptying._delete: name.startswith(WATERMARK_PREFIX) → False; without BASELINE
Emptying._delete_all: not self._still_waits() → False; without left += [item for item in answer['Items'] if item.…
Emptying.empty: counted and each.name not in names and registry.en… → False
Emptying.empty: without yield from self._rest(entries, STALE, self.fresh)
Emptying.empty: without yield from self._rest(entries, WAITING, self.folde…
_require_fillable: (gone := _uncounted(declared[name], known)) → False
_require_fillable: isinstance(declared[name].source, Direct) → False
names_to_fill: found & {below.name for below in with_below(each)} → False
names_to_fill: without found |= {below.name for below in with_below(each)…
names_to_fill: without raise BackfillError(f"run {filling[0]} fills {', '…
== _backfill/feeds.py
Scan.rows: is_filled(self.run, item) and (not is_own) → False
is_emulated: EMULATOR_HEADER in described.get('ResponseMetadata… → True
== _backfill/runner.py
Lineage.waiting: without is_done(self.parents.get(shard, ''))
Runner._ended: self.state.run not in registry.runs → False
Runner._require_open: self.state.run not in founded_registry(self.table)… → False
Runner.steps: self.state.phase != WAITING or self._same_shards() → True
contributions: without item.digest not in changed
== _backfill/verification.py
Verification._await_transactions: self.now() + self.feeds.clocks → self.now() - self.feeds.clocks
Verification._await_transactions: self.state.phase != COMPARING → False
Verification._compare: without yield from self._await_transactions(total)
Verification._differing: change.is_direct or change.sequence <= held[ref].a… → True
Verification._finish: 'RestoreSummary' in table['Table'] → False; not self._ended(COMPLETE) → False
Verification._hold: known.issuperset(self.state.lineage.parents) → True
Verification._is_beyond: retention is not None and closing_times(fields, re… → False; without is_late
Verification._judge: waits[ref] → False
Verification._missing: without name not in late
Verification._try_to_open: registry.names.keys() - direct → registry.names.keys()
Verification.repair: without delta.measures.setdefault(SCORE, 0)
judge: without _grows(declaration, name); without is_gone
quarantined_groups: without erased.update(() if STATE in item else names_of(it…
quarantined_groups: without float(item.get(CHANGED_AT, {}).get('N', 0)) >= run…
== _clients.py
sending_once: True → False
== _commit/batch.py
Aggregator._batch: without self._quarantine.leave_aside(shard, fresh)
Aggregator._count: without put_crossings(self._table, crossings(plan, some, r…
Aggregator._count: without self._names.note_surplus(surplus_of(plan, some))
Aggregator._require_young: age > GUARANTEE → False
intake: without not change.is_foreign
put_crossings: (failures := [there for there in answers if isinst… → False
== _commit/checkpoints.py
Checkpoints._read_item: item and item['shard']['S'] != shard → False
Checkpoints.of: without cached.applied_through >= last or read_at + FRESH …
Checkpoints.settled: without known[digest].read_at = now
checkpoint_of: without digest == item[PK]['S'].removeprefix(CHECKPOINT_PR…; without is_sequence(applied_through)
== _commit/commit.py
Committer._refused: except UNREADABLE → except ()
Committer._remember: delta.ref not in failures → True; without self._progress[part.watermark.shard] = written | l…
Committer._write: update.requests > 1 and len(item.deltas) > 1 → False; without item.bound(part.watermark)
Committer._write_together: not statements or time_left(self._table.clock()) <… → False
Committer.commit: applied_through → False; without elsewhere += item.deltas
Committer.commit: without elsewhere += item.deltas if item.page is not None …
PageSplits.grown: without layout.pages.is_whole
_settled: error is None → True
== _control/counted_names.py
CountedNames._lacks_past: without began = datetime.fromisoformat(label).replace(tzin…
CountedNames._new_entries: not registry.is_founded → True; without continue; without isinstance(each.source, Direct)
CountedNames._new_entries: without not registry.is_founded
CountedNames._require_readable: entry.state == WAITING → True; now <= entry.at + FRESH + CLOCKS → False
CountedNames.portions: entry.run and entry.run not in past_runs → False
CountedNames.refresh: without PageLevels.of_table(self._table).clear(); without not self._always_reads
CountedNames.refresh: without self._read_at + FRESH > now
NameStates._entry: (known := entry.declaration) is not None → (known := entry.declaration) is None; not item → False
NameStates._entry: without again=True
NameStates._read: before and item != before → False; without now >= read_at + FRESH
NameStates.complete: without entry.is_complete
NameStates.counts: entry is None or entry.is_complete → True
plan_of: entry.run → False
restrict: later → False
== _control/registry.py
Registry.may_exceed: declaration.on_expiry != 'keep' → False; entry is not None and entry.surplus → False
Registry.may_exceed: source.name not in {event.name for event in events… → False
Registry.readable: unread.isdisjoint((below.name for below in with_be… → True
note_surplus: without PK
== _control/run_items.py
RunLogs._stored_cut: without created >= run.since - SKEW
RunLogs.cut: min(next(late, NO_CUT), self._stored_cut(run, shar… → self._stored_cut(run, shard, changes)
logged: without later; without unfoldable += lacking
== _erase/eraser.py
Eraser._sweep_chunks: without self._note()
Eraser._sweep_entries: without state == PROVISIONAL and bool(read_registry(self._…; without state == WAITING
Eraser._sweep_items: counts == 'keep' → False
== _fold/contributions.py
ActivePages.groups: min(number - before, self._longest) → number - before; number >= begin → True
ActivePages.groups: read_number(group, self._items) > 0 → True
_compile_groups: (found := prod(map(len, choices))) > most → False
compile_columns: chunk.signs → False
compile_program: declaration.on_expiry == 'keep' → True
compile_window: seconds - tier.start(bucket) → seconds
looked_back_at: tier.parse(unit) > following - longest → False
looked_back_at: tier.parse(unit) > following - longest → tier.parse(unit) >= following - longest
== _fold/crossings.py
_of_change: without change.sequence != padded(images['SequenceNumber']…; without is_split(old, new)
_of_group: crossed[::-1] → crossed; threshold.once → False; threshold.once → True
_of_group: without change.record.get('eventID')
in_requests: without group in groups
== _fold/fold.py
_Folding._chunk: change.aside → False; row.sign == '+' → True
_Folding._contributions: without self.folded.skipped_types[str(image[TYPE].get('S',…; without tuple(failed)
_Folding._leave: change.aside[name][1] → True; not names → True
_Folding._programs: image_name == OLD → False; program.layout.name not in names → True; without source.ttl
_Folding._quarantined_delta: program.layout.is_late(group, change.created) → False
_Folding.add: change.record.get('eventName') in ('INSERT', 'MODI… → False
_Folding.add: without self._add_to_deltas(-1, minus, change.sequence)
== _fold/item_layout.py
ItemLayout.expires_at: self.closing_time(group) + GROUP_KEPT → self.closing_time(group)
== _fold/page_layout.py
PageLayout._sk_texts: self._unit.parse(unescape(shared[-1])) - self._lon… → self._unit.parse(unescape(shared[-1]))
== _fold/plan.py
Plan.sources: is_foreign is False → False
== _fold/records.py
Origins.is_foreign: table.rpartition('/')[2] == self._own → True
is_erasure: ERASED in new and PK not in new and (record.get('e… → False
is_expiry: None not in (expires_at, created) and 0 <= created… → False
== _fold/updates.py
PageUpdate.__init__: layout.pages.is_whole → False
PageUpdate.request: without bound
== _items/conversions.py
escape: UNSAFE.search(text) → False
== _items/derived_fields.py
LogBins._name_of: without index += size > self._bound(index)
== _layouts.py
Layouts.require: found not in (None, declared) → False
PageLevels.learn: False → True; without before not in self._guessed
_text: event.retention is None → True
== _quarantine/quarantine.py
_can_count: without folded.deltas; without folded.early
confirm: other is None → True
held_by: without frozenset(names_of(item))
state_request: without STATE (2)
== _reads/events.py
_lines: any((texts.get(name, text) != text for name, text … → False; without 'future_tolerance'; without 'retention'
_times: without parts_of(name)[0] == attribute
explain: max(limit, 1) → limit; without require_scan(source, scan=scan)
== _reads/group_reads.py
read_extremes: without read_number(item, 'items') > 0
== _reads/span_reads.py
add_moments: add_up(span, [(bucket, held)]) + span.tier.start(b… → add_up(span, [(bucket, held)])
== _reads/table_reads.py
_pages_at: levels.learn(places[index][0].name, page, item) → True
numbers_by_unit: page.level → False; without page.first
== _table.py
Table.each: errors → False
Table.update_once: may_be_done(error) → False
== _writes/chunk_writes.py
_Writing._decide: entry.digest not in places and len(places) + len(s… → False; without entry.digest not in places
_Writing._put_next: log.look(consistent=True).get(number) == self._bat… → False
_Writing._put_next: without self._undecided, self._lacking, self._next = (self…
== _writes/direct_counts.py
_open_group: layout.closing_time is not None and layout.closing… → False; not isinstance(declared, Counter) → False
reset: without seen
== _writes/leases.py
Holding._add: self._quota.limit - units → self._quota.limit
Holding.give_back: isinstance(error, InDoubtError) → False
Holding.give_back: without self.units = 0 if isinstance(error, InDoubtError) …
Leases._current: holding.period.end > earliest → False
Leases._own_lock: self._pid != os.getpid() → False
Leases.release: without holding.give_back()
== exactly_once.py
ExactlyOnce._contributions: created + MAX_RECORD_AGE < self._clock() → False
ExactlyOnce._count: without raise CommitError(failures)
== handlers/ingest_queue.py
Consumer._outcomes: isinstance(error, ClientError | BotoCoreError | Ti… → True
Consumer._send: is_whole → True
Consumer.consume: retention is None → True
Message.is_done: all((outcome.status != OutcomeStatus.FAILED for ou… → True
== handlers/notifier.py
_put: except (BotoCoreError, ClientError) → except ()
handler: context.get_remaining_time_in_millis() < 1000 * LO… → False; without break (2); without not _lasts(error)
""")
)
