"""Mutations of the room that writes events, and of quotas."""

from __future__ import annotations

from typing import Final

WRITES: Final = r"""
== _clients.py
* botocore sends an increment again by itself
- _is_sent_once.set(True)
+ _is_sent_once.set(False)
? test_lost_answers.py::test_requests_whose_answers_are_lost_are_not_sent_again

== _commit/commit.py
* more than 25 statements go into a call
- calls_of(recent))
+ [recent])
? test_mechanisms.py::test_recent_items_are_updated_25_at_once
* a long statement goes into a batch
- if len(statement["Statement"]) <= MAX_STATEMENT_CHARACTERS:
+ if True:
? test_mechanisms.py::test_a_statement_that_is_too_long_goes_alone

== _writes/chunk_writes.py
* a chunk is put whether there is one or not
- f"attribute_not_exists({PK})"
+ f"attribute_not_exists({PK}) OR attribute_exists({PK})"
? test_packed.py::test_a_chunk_overwrites_no_other
* earlier chunks are not read
- self.append(zip(self._identity.digests(chunk), chunk.signs or "+" * chunk.rows, strict=True))
+ self.append([])
? test_packed.py::test_an_event_of_an_earlier_chunk_is_a_duplicate_to_a_process_that_has_just_started
* a failure after the first page hides whose chunk was met
-         self.is_known = "LastEvaluatedKey" not in page
+         self.is_known = "LastEvaluatedKey" not in page
+         found |= {} if self.is_known else self.look(consistent=consistent)
? test_packed.py::test_a_long_log_that_cannot_be_read_on_hides_no_chunk_of_ones_own
* a log that is full takes more
- if entry.digest not in places and len(places) + len(self._lacking) >= MOST_EVENTS:
+ if False:
? test_packed.py::test_a_log_that_is_full_refuses_other_events_and_knows_its_own
* a gap in the numbers of chunks is not seen
- return writers | self.look(consistent=True)
+ break
? test_packed.py::test_a_bucket_with_a_hole_is_not_written

== _writes/chunk_writes.py
* a writer that was refused does not look for its own batch id
- .get(number) == self._batch
+ .get(number) == ""
? test_packed.py::test_a_put_whose_answer_was_lost_is_known_by_its_batch_id
* a log that is full takes back no event of its own
- if entry.digest not in places and len
+ if len
? test_packed.py::test_a_log_that_is_full_refuses_other_events_and_knows_its_own
* refused rows are put again as they were
-             self._undecided, self._lacking, self._next = self._lacking, [], None
+
? test_packed.py::test_rows_that_others_have_put_meanwhile_are_decided_again
* after a refusal what is known is held to be the log
- elif log.look(consistent=True).get(number) == self._batch:
+ elif log.look(consistent=True) is not None:
? test_packed.py::test_rows_that_others_have_put_meanwhile_are_decided_again
* the retraction of what is not known is answered from the cache
- return Row("0" if entry.retracts else "+", entry.values)
+ return None if entry.retracts else Row("+", entry.values)
? test_packed.py::test_a_retraction_by_a_process_with_an_old_cache_finds_the_event
* the caller says what is taken back
- values = self._log.values(entry.digest)
+ values = entry.values
? test_packed.py::test_values_taken_back_are_those_of_the_log_not_of_the_caller
* an event that was retracted can come again
- if place is None:
+ if place in (None, GONE):
? test_packed.py::test_an_event_that_was_retracted_stays_so

== _writes/leases.py
* clocks are taken to be right
- self._quota._period, (earliest, latest)
+ self._quota._period, (moment,)
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* a portion is reserved whatever the limit
- #reserved <= :bound"
+ #reserved <= :bound OR #reserved > :bound"
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* a portion may begin where the limit is reached
- self._quota.limit - units
+ self._quota.limit
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* units whose release is in doubt are given back again
- self.units = 0 if isinstance(error, InDoubtError) else units
+ self.units = units
? test_quotas.py::test_units_in_doubt_are_given_back_once_and_never_granted
* units whose release was refused are forgotten
- self.units = 0 if isinstance(error, InDoubtError) else units
+ pass
? test_quotas.py::test_units_whose_release_was_refused_are_given_back_by_the_next
* lost answers give up portion after portion
- size, self._size = min(2 * self._size, self._quota._portion_size), 1
+ size = self._size = min(2 * self._size, self._quota._portion_size)
? test_quotas.py::test_answers_that_are_lost_give_up_no_more_than_was_asked_for
* calls are granted while they are given back
- units, self.units = self.units, 0
+ units = self.units
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* reservations expire with the period's beginning
- self.period.end + KEPT_LONGER
+ self.period.start
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* an item of a quota has no type
- "#type": TYPE
+ "#type": "type"
? test_quotas.py::test_reservations_are_no_items_of_other_code

== _writes/direct_counts.py
* a reset takes what it has not read
- {TYPE: item.get(TYPE), **seen}
+ {TYPE: item.get(TYPE)}
? test_lost_answers.py::test_two_resets_that_have_read_the_same_number_do_not_both_take_it
* anybody changes a group whose retention is over
- if layout.closing_time is not None and layout
+ if False and layout
? test_expiring_members.py::test_groups_whose_retention_is_over_take_no_direct_change
* what the stream counts is incremented
- if not isinstance(declared, Counter):
+ if False:
? test_registry.py::test_what_the_stream_counts_takes_no_increment

== _layouts.py
* a page is taken for lost by what was guessed of another
- >= born and before not in self._guessed:
+ >= born:
? test_page_guards.py::test_a_page_is_lost_only_by_the_word_of_the_page_that_it_has_split_off_from
* a page that has not split off yet has no groups
- is_guess=True)
-         return False
+ is_guess=True)
+         return True
? test_page_guards.py::test_a_reader_that_guesses_wrong_asks_on

== _reads/table_reads.py
* a reader takes a page of any level for the right one
- if levels.learn(places[index][0].name, page, item):
+ if levels.learn(places[index][0].name, page, item) or True:
? test_page_guards.py::test_a_reader_that_guesses_wrong_asks_on
* a unit is read from its first page alone
- if page.level:
+ if False:
? test_measures.py::test_a_unit_whose_page_has_split_is_read_whole
* a unit is read once for each of its pages
- if page is None or page.first:
+ if page is None:
? test_measures.py::test_a_unit_whose_page_has_split_is_read_whole

== _reads/span_reads.py
* moments are taken to be counted from 1970 on
- + span.tier.start(bucket) * add_up(span, [(bucket, numbers)])
+
? test_measures.py::test_a_level_and_its_integral_are_those_of_its_changes

== _reads/group_reads.py
* a value that no item has any more is an extreme
- if read_number(item, "items") > 0 and
+ if
? test_measures.py::test_extremes_are_those_of_the_events_there_are

== _writes/leases.py
* a call between two periods counts in the first alone
- for holding in current:
+ for holding in current[:1]:
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* holdings are forgotten at each call
- if holding.period.end > earliest}
+ if False}
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* a release gives nothing back
- holding.give_back()
+ pass
? test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong
* a child of a process grants what its parent holds
- if self._pid != os.getpid():
+ if False:
? test_quotas.py::test_a_forked_process_grants_nothing_of_what_its_parent_holds
* threads grant the same call
- threading.Lock(), dict
+ threading.Semaphore(9), dict
? test_quotas.py::test_threads_never_grant_the_same_call

== _table.py
* a request is sent again whose answer was lost
- if may_be_done(error):
+ if False:
? test_lost_answers.py::test_requests_whose_answers_are_lost_are_not_sent_again

== _writes/direct_counts.py
* writers change items of other declarations
- "(attribute_not_exists(#own) OR #own = :own)"
+ "(attribute_not_exists(#own) OR attribute_exists(#own) OR #own = :own)"
? test_registry.py::test_a_direct_count_never_changes_an_item_of_another_name

== _writes/accept.py
* a bucket takes events until its chunks have expired
- if closing_time(event, key.start) <= now:
+ if closing_time(event, key.start) + 86_400 <= now:
? test_packed.py::test_a_bucket_takes_no_events_long_before_its_chunks_expire

"""
