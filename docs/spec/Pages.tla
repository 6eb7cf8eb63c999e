-------------------------------- MODULE Pages --------------------------------
(***************************************************************************)
(* Groups in pages that split.                                             *)
(*                                                                         *)
(* A page is an item with the numbers of many groups, one watermark per    *)
(* shard, and its level.  A batch adds to a page what it has for all       *)
(* groups there, on condition of the watermark and of the level.  A page   *)
(* that is full splits in one transaction: half of its groups move to a    *)
(* new page, which gets a copy of its watermarks, and both are one level   *)
(* deeper.  So a group is in one page at any time, and its page knows what *)
(* it has counted.                                                         *)
(*                                                                         *)
(* Processes and readers guess at which level a group is, and a page that  *)
(* they ask corrects them.  Sequence numbers count from 1 in each shard.   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  None,       \* Stands for what is not there.
  Groups, Shards, Processes, Splitters, Readers,
  Streams,    \* Of each shard: its records, each the set of groups in which it counts.
  Depth,      \* The deepest level.
  Home,       \* Of each group: its page at each level, from level 0 on.
  Features,   \* What takes part: a subset of AllFeatures.
  Without     \* Guards that are removed: a subset of AllGuards.

AllFeatures == {"increments", "lost answers", "stale reads"}
AllGuards == {"level", "watermark", "watermarks copied", "as read", "one transaction", "only splits create",
              "level read", "parent read", "refold", "whole page"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  page,       \* Of each page: the item, or None.
  past,       \* Of each page: the items that it has been, for reads that are stale.
  acked,      \* Of each shard: where the event source mapping stands.
  process,
  counted,    \* <<group, shard, record>>: applied at least once.
  recounted,  \* <<group, shard, record>>: applied again.
  added,      \* Of each group: increments.
  splitter,
  reader,
  had,        \* Of each group: the numbers that it has had.
  answers     \* <<group, number, least>> that readers were given, and what the group had when they asked.

vars == <<page, past, acked, process, counted, recounted, added, splitter, reader, had, answers>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features
Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

Levels == 0..Depth
HomeOf(g, level) == Home[g][level + 1]
Pages == {HomeOf(g, level) : g \in Groups, level \in Levels}

Idle == [phase |-> "idle", shard |-> None, last |-> 0, after |-> <<>>, level |-> <<>>, pending |-> {}]
Away == [phase |-> "away", page |-> None, item |-> None]
Done == [phase |-> "done", group |-> None, level |-> 0, least |-> 0]
Blank == [level |-> 0, value |-> [g \in Groups |-> 0], watermark |-> [s \in Shards |-> 0], version |-> 0]

(* Records of a shard after `from` and up to `last` that count in a group. *)
Counts(s, g, from, last) == {n \in (from + 1)..last : g \in Streams[s][n]}

(* The number of a group, wherever it is. *)
RECURSIVE Total(_, _)
Total(g, pages) ==
  IF pages = {} THEN 0
  ELSE LET p == CHOOSE p \in pages : TRUE IN (IF page[p] = None THEN 0 ELSE page[p].value[g]) + Total(g, pages \ {p})

(* Pages `changed` replace what they were. *)
Becomes(changed) ==
  /\ page' = [p \in Pages |-> IF p \in DOMAIN changed THEN changed[p] ELSE page[p]]
  /\ past' = IF With("stale reads") THEN [p \in Pages |-> past[p] \cup {page'[p]}] ELSE past

-----------------------------------------------------------------------------
(* Batches.  The mapping delivers any records from anywhere up to where it stands; guesses are any. *)

Deliver(p, s, begin, last, guess) ==
  LET touched == {g \in Groups : Counts(s, g, begin, last) # {}} IN
  /\ process[p].phase = "idle" /\ begin <= acked[s] /\ last <= Len(Streams[s]) /\ begin < last
  /\ process' = [process EXCEPT ![p] = [phase |-> "committing", shard |-> s, last |-> last,
                   after |-> [g \in Groups |-> begin], level |-> [g \in Groups |-> guess], pending |-> touched]]
  /\ UNCHANGED <<page, past, acked, counted, recounted, added, splitter, reader, had, answers>>

(* One request: all groups of a batch that are in page `h` at a level, if its process guesses so of one of them. *)
Commit(p, h, level, heard) ==
  LET r == process[p]
      s == r.shard
      guessed == {g \in r.pending : r.level[g] = level /\ HomeOf(g, level) = h}
      here == IF Has("whole page") THEN {g \in r.pending : HomeOf(g, level) = h} ELSE guessed
      new == {<<g, s, n>> : g \in here, n \in 1..r.last} \cap UNION {{<<g, s, n>> : n \in Counts(s, g, r.after[g], r.last)} : g \in here}
      first == Min({x[3] : x \in new})
      item == IF page[h] = None THEN Blank ELSE page[h]
      isThere == page[h] # None \/ level = 0 \/ ~Has("only splits create")
      isLevel == item.level = level \/ page[h] = None \/ ~Has("level")
      isNew == item.watermark[s] < first \/ ~Has("watermark")
      written == [item EXCEPT !.value = [g \in Groups |-> @[g] + Cardinality({x \in new : x[1] = g})],
                              !.watermark[s] = Max({@, r.last}), !.version = @ + 1,
                              !.level = IF page[h] = None THEN level ELSE @]
      corrected == IF page[h] = None /\ ~isThere THEN [r EXCEPT !.level = [g \in Groups |-> IF g \in here THEN level - 1 ELSE @[g]]]
                   ELSE IF ~isLevel THEN [r EXCEPT !.level = [g \in Groups |-> IF g \in here THEN item.level ELSE @[g]]]
                   ELSE [r EXCEPT !.after = [g \in Groups |-> IF g \in here THEN item.watermark[s] ELSE @[g]],
                                  !.pending = {g \in @ : g \notin here
                                    \/ (Has("refold") /\ Counts(s, g, item.watermark[s], r.last) # {})}] IN
  /\ r.phase = "committing" /\ guessed # {}
  /\ IF isThere /\ isLevel /\ isNew
     THEN /\ Becomes(h :> written)
          /\ counted' = counted \cup new
          /\ recounted' = recounted \cup (counted \cap new)
          /\ had' = [g \in Groups |-> had[g] \cup {Total(g, Pages) + Cardinality({x \in new : x[1] = g})}]
          /\ process' = IF heard THEN [process EXCEPT ![p].pending = @ \ here] ELSE process
     ELSE /\ heard
          /\ process' = [process EXCEPT ![p] = corrected]
          /\ UNCHANGED <<page, past, counted, recounted, had>>
  /\ UNCHANGED <<acked, added, splitter, reader, answers>>

Finish(p) ==
  /\ process[p].phase = "committing" /\ process[p].pending = {}
  /\ acked' = [acked EXCEPT ![process[p].shard] = Max({@, process[p].last})]
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<page, past, counted, recounted, added, splitter, reader, had, answers>>

Crash(p) ==
  /\ process[p].phase # "idle"
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<page, past, acked, counted, recounted, added, splitter, reader, had, answers>>

(* A writer increments a group in its page, on condition of the level; once. *)
Increment(g) ==
  LET level == IF page[HomeOf(g, 0)] = None THEN 0 ELSE Max({l \in Levels : page[HomeOf(g, l)] # None /\ page[HomeOf(g, l)].level = l})
      h == HomeOf(g, level)
      item == IF page[h] = None THEN Blank ELSE page[h] IN
  /\ With("increments") /\ added[g] = 0
  /\ Becomes(h :> [item EXCEPT !.value[g] = @ + 10, !.version = @ + 1])
  /\ added' = [added EXCEPT ![g] = 1]
  /\ had' = [had EXCEPT ![g] = @ \cup {Total(g, Pages) + 10}]
  /\ UNCHANGED <<acked, process, counted, recounted, splitter, reader, answers>>

-----------------------------------------------------------------------------
(* A page splits: it is read, and both pages are written in one transaction, on condition that it is as it was read. *)

Movers(h, level) == {g \in Groups : HomeOf(g, level) = h /\ HomeOf(g, level + 1) # h}
Child(h, level) == CHOOSE c \in {HomeOf(g, level + 1) : g \in Movers(h, level)} : TRUE

ReadToSplit(x, h) ==
  /\ splitter[x].phase = "away" /\ page[h] # None /\ page[h].level < Depth /\ Movers(h, page[h].level) # {}
  /\ splitter' = [splitter EXCEPT ![x] = [phase |-> "read", page |-> h, item |-> page[h]]]
  /\ UNCHANGED <<page, past, acked, process, counted, recounted, added, reader, had, answers>>

Split(x) ==
  LET h == splitter[x].page
      seen == splitter[x].item
      moving == Movers(h, seen.level)
      c == Child(h, seen.level)
      isAsRead == page[h].version = seen.version \/ ~Has("as read")
      isLevel == page[h].level = seen.level /\ page[c] = None
      child == [level |-> seen.level + 1, value |-> [g \in Groups |-> IF g \in moving THEN seen.value[g] ELSE 0],
                watermark |-> IF Has("watermarks copied") THEN seen.watermark ELSE [s \in Shards |-> 0], version |-> 1]
      parent == [page[h] EXCEPT !.level = seen.level + 1, !.version = @ + 1,
                                !.value = [g \in Groups |-> IF g \in moving THEN 0 ELSE @[g]]] IN
  /\ splitter[x].phase = "read"
  /\ IF ~(isAsRead /\ isLevel)
     THEN UNCHANGED <<page, past>> /\ splitter' = [splitter EXCEPT ![x] = Away]
     ELSE IF Has("one transaction")
     THEN Becomes(h :> parent @@ c :> child) /\ splitter' = [splitter EXCEPT ![x] = Away]
     ELSE Becomes(c :> child) /\ splitter' = [splitter EXCEPT ![x].phase = "moved"]
  /\ UNCHANGED <<acked, process, counted, recounted, added, reader, had, answers>>

(* Only without the guard: the groups are taken from the page later. *)
Take(x) ==
  LET h == splitter[x].page
      moving == Movers(h, splitter[x].item.level) IN
  /\ splitter[x].phase = "moved"
  /\ Becomes(h :> [page[h] EXCEPT !.level = splitter[x].item.level + 1, !.version = @ + 1,
                                  !.value = [g \in Groups |-> IF g \in moving THEN 0 ELSE @[g]]])
  /\ splitter' = [splitter EXCEPT ![x] = Away]
  /\ UNCHANGED <<acked, process, counted, recounted, added, reader, had, answers>>

-----------------------------------------------------------------------------
(* A reader guesses a level, and goes where the page sends it. *)

Ask(x, g, level) ==
  /\ reader[x].phase = "done"
  /\ reader' = [reader EXCEPT ![x] = [phase |-> "asking", group |-> g, level |-> level, least |-> Total(g, Pages)]]
  /\ UNCHANGED <<page, past, acked, process, counted, recounted, added, splitter, had, answers>>

Read(x) ==
  LET g == reader[x].group
      level == reader[x].level
      h == HomeOf(g, level)
      Answer(number) == /\ answers' = answers \cup {<<g, number, reader[x].least>>}
                        /\ reader' = [reader EXCEPT ![x] = Done] IN
  /\ reader[x].phase = "asking"
  /\ \E item \in (IF With("stale reads") THEN past[h] ELSE {page[h]}) :
       IF item = None
       THEN IF level = 0 \/ ~Has("parent read") THEN Answer(0)
            ELSE reader' = [reader EXCEPT ![x].level = level - 1] /\ UNCHANGED answers
       ELSE IF item.level = level \/ ~Has("level read") THEN Answer(item.value[g])
       ELSE reader' = [reader EXCEPT ![x].level = item.level] /\ UNCHANGED answers
  /\ UNCHANGED <<page, past, acked, process, counted, recounted, added, splitter, had>>

-----------------------------------------------------------------------------
Init ==
  /\ page = [p \in Pages |-> None]
  /\ past = [p \in Pages |-> {None}]
  /\ acked = [s \in Shards |-> 0]
  /\ process = [p \in Processes |-> Idle]
  /\ counted = {} /\ recounted = {}
  /\ added = [g \in Groups |-> 0]
  /\ splitter = [x \in Splitters |-> Away]
  /\ reader = [x \in Readers |-> Done]
  /\ had = [g \in Groups |-> {0}]
  /\ answers = {}

Next ==
  \/ \E p \in Processes :
       \/ \E s \in Shards : \E begin \in 0..acked[s] : \E last \in (begin + 1)..Len(Streams[s]) :
            \E guess \in Levels : Deliver(p, s, begin, last, guess)
       \/ \E h \in Pages : \E level \in Levels : \E heard \in (IF With("lost answers") THEN BOOLEAN ELSE {TRUE}) :
            Commit(p, h, level, heard)
       \/ Finish(p) \/ Crash(p)
  \/ \E g \in Groups : Increment(g)
  \/ \E x \in Splitters : (\E h \in Pages : ReadToSplit(x, h)) \/ Split(x) \/ Take(x)
  \/ \E x \in Readers : (\E g \in Groups : \E level \in Levels : Ask(x, g, level)) \/ Read(x)

-----------------------------------------------------------------------------
AtMostOnce == recounted = {}

Quiescent ==
  /\ \A p \in Processes : process[p].phase = "idle"
  /\ \A s \in Shards : acked[s] = Len(Streams[s])

Truth(g) == Cardinality({<<s, n>> \in UNION {{<<s, n>> : n \in 1..Len(Streams[s])} : s \in Shards} : g \in Streams[s][n]}) + 10 * added[g]

(* Whenever everything is acknowledged, every group has its number. *)
Exact == Quiescent => \A g \in Groups : Total(g, Pages) = Truth(g)

(* A group's number is in one page. *)
OneHome == \A g \in Groups : Cardinality({p \in Pages : page[p] # None /\ page[p].value[g] # 0}) <= 1

(* Readers are given numbers that a group has had; those whose reads are not stale, none from before they asked. *)
ReadOnce == \A x \in answers : x[2] \in had[x[1]] /\ (With("stale reads") \/ x[2] >= x[3])

TypeOK == \A p \in Pages : page[p] # None => page[p].level \in Levels /\ \A s \in Shards : page[p].watermark[s] \in 0..Len(Streams[s])
=============================================================================
