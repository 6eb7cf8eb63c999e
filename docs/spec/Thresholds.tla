------------------------------ MODULE Thresholds ------------------------------
(***************************************************************************)
(* Lines that a group's number crosses, each crossing reported once.       *)
(*                                                                         *)
(* Each change of a group's item is a record of the stream, with the item  *)
(* before and after it.  An invocation that is delivered the record judges *)
(* it, by the thresholds in force at its birth, and puts an item into the  *)
(* outbox for each crossing, if it is not there, before the checkpoint     *)
(* moves.  The outbox item's own record is delivered to the notifier,      *)
(* which sends an event.                                                   *)
(*                                                                         *)
(* Counters.tla says that a generation folds every source record once and  *)
(* in order, and that every process knows an era in time; here each        *)
(* generation folds at its own pace.  Backfill.tla says that the baseline  *)
(* is what the generation has not folded itself.                           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,         \* Stands for what is not there.
  Processes,
  Adds,         \* Of each source record: what it adds to the group.
  Born,         \* Of each source record: the era at its birth.
  Eras,         \* Of each era: which generations it folds, and its threshold.
  Generations,  \* 1 is the first.
  Shards,
  Home,         \* Of each generation: the shard of its item's records.
  Features,     \* What takes part: a subset of AllFeatures.
  Without       \* Guards that are removed: a subset of AllGuards.

AllFeatures == {"expiry", "notifier"}
AllGuards == {
  "from the record", "by birth", "one generation", "removals cross nothing", "before the checkpoint", "failures fail", "condition", "in order", "key of the record", "sequence", "once ever",
  "refused is retried", "id of the item"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  era,
  item,        \* Of each generation: the number that the group's item holds, or None.
  at,          \* Of each generation: the last source record that it has folded.
  reads,       \* The generation that readers use; all up to it are filled.
  stream,      \* Of each shard: the records of the group's items.
  unsaid,      \* Only if the fold reports: crossings that it has not put yet.
  gone,        \* Generations whose item has expired.
  acked,       \* Of each shard: where the event source mapping stands.
  checkpoint,  \* Of each shard.
  process,
  outbox,      \* Items, in the order in which they were put.
  overwritten, \* Keys of items that were put again with other content.
  handled,     \* Where the notifier's event source mapping stands.
  sent         \* Events: of which item, and with which id.

group == <<era, item, at, reads, stream, unsaid, gone>>
delivery == <<acked, checkpoint, process>>
notices == <<handled, sent>>
vars == <<group, delivery, outbox, overwritten, notices>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features
Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE LET n == CHOOSE n \in S : TRUE IN Adds[n] + Sum(S \ {n})

Idle == [phase |-> "idle", shard |-> None, last |-> 0, todo |-> <<>>]

-----------------------------------------------------------------------------
(* Lines. *)

Up == 1
Down == -1
Fires(e) == Min(Eras[e].folds)

(* A group that is not there holds 0. *)
Value(image) == IF image = None THEN 0 ELSE image
IsAbove(image, level) == Value(image) >= level

Crossed(old, new, e) ==
  {<<level, direction>> \in Eras[e].levels \X Eras[e].directions :
     /\ IsAbove(old, level) # IsAbove(new, level)
     /\ direction = IF IsAbove(new, level) THEN Up ELSE Down}

(* In the order in which the number passes them; all go in one direction. *)
Before(x, y) == x[1] * x[2] < y[1] * y[2]
Chosen(crossed, e) == IF Eras[e].burst = "all" THEN crossed ELSE {x \in crossed : \A y \in crossed \ {x} : Before(y, x)}

(* What must be reported: a REMOVE crosses nothing, and the lowest generation of the era in force at the record's birth reports. *)
Right(s, n) ==
  LET x == stream[s][n] IN
  IF x.new = None \/ x.generation # Fires(x.era) THEN {} ELSE Chosen(Crossed(x.old, x.new, x.era), x.era)

-----------------------------------------------------------------------------
(* The group: whatever changes its item makes a record. *)

Crossing(g, n, x, e) == [generation |-> g, record |-> n, level |-> x[1], direction |-> x[2], era |-> e]

RECURSIVE Ordered(_, _, _, _)
Ordered(g, n, crossed, e) ==
  IF crossed = {} THEN <<>>
  ELSE LET x == CHOOSE x \in crossed : \A y \in crossed \ {x} : Before(x, y) IN
       <<Crossing(g, n, x, e)>> \o Ordered(g, n, crossed \ {x}, e)

Becomes(g, new) ==
  /\ item' = [item EXCEPT ![g] = new]
  /\ stream' = [stream EXCEPT ![Home[g]] = Append(@, [generation |-> g, old |-> item[g], new |-> new, era |-> era])]

Folds(g, n) == g \in Eras[Born[n]].folds

(* A batch's records of one era, in one update.  If the fold reports, it knows the crossing from the answer to its update. *)
Update(g, n) ==
  LET folded == {m \in (at[g] + 1)..n : Folds(g, m)}
      new == Value(item[g]) + Sum(folded) IN
  /\ at[g] < n /\ Born[n] <= era /\ Folds(g, n) /\ unsaid = <<>>
  /\ \A m \in folded : Born[m] = Born[n]
  /\ Becomes(g, new)
  /\ at' = [at EXCEPT ![g] = n]
  /\ unsaid' = IF Has("from the record") \/ g # Fires(era) THEN <<>>
               ELSE Ordered(g, Len(stream[Home[g]]) + 1, Chosen(Crossed(item[g], new, era), era), era)
  /\ UNCHANGED <<era, reads, gone, delivery, outbox, overwritten, notices>>

(* The baseline is added, and readers switch. *)
Fill(g) ==
  /\ g = reads + 1 /\ g \in Eras[era].folds
  /\ Becomes(g, Value(item[g]) + Sum({n \in DOMAIN Adds : Born[n] <= era /\ ~Folds(g, n)}))
  /\ reads' = g
  /\ UNCHANGED <<era, at, unsaid, gone, delivery, outbox, overwritten, notices>>

Advance ==
  /\ era < Len(Eras) /\ Fires(era + 1) <= reads
  /\ era' = era + 1
  /\ UNCHANGED <<item, at, reads, stream, unsaid, gone, delivery, outbox, overwritten, notices>>

(* The item expires; late records create it again. *)
Expire(g) ==
  /\ With("expiry") /\ item[g] # None /\ g \notin gone
  /\ Becomes(g, None)
  /\ gone' = gone \cup {g}
  /\ UNCHANGED <<era, at, reads, unsaid, delivery, outbox, overwritten, notices>>

-----------------------------------------------------------------------------
(* The outbox.  An answer that is lost is a put that another delivery has made. *)

Key(c, p) ==
  LET once == Eras[c.era].once IN
  <<IF once /\ Has("once ever") THEN 0 ELSE c.generation,
    IF once \/ ~Has("sequence") THEN 0 ELSE c.record,
    c.level, c.direction, IF Has("key of the record") THEN 0 ELSE p>>

PutInto(c, p) ==
  LET key == Key(c, p)
      there == {i \in DOMAIN outbox : outbox[i].key = key} IN
  /\ outbox' = IF there = {} THEN Append(outbox, [key |-> key, crossing |-> c]) ELSE outbox
  /\ overwritten' = IF Has("condition") \/ \A i \in there : outbox[i].crossing = c THEN overwritten ELSE overwritten \cup {key}

-----------------------------------------------------------------------------
(* Batches of the group's records, from anywhere up to where the mapping stands. *)

Judged(s, n, deployment) ==
  LET x == stream[s][n]
      e == IF deployment = None THEN x.era ELSE deployment
      isSilent == (x.generation # Fires(e) /\ Has("one generation")) \/ (x.new = None /\ Has("removals cross nothing")) IN
  IF isSilent \/ ~Has("from the record") THEN <<>>
  ELSE Ordered(x.generation, n, Chosen(Crossed(x.old, x.new, e), e), e)

RECURSIVE Todo(_, _, _, _)
Todo(s, from, last, deployment) ==
  IF from >= last THEN <<>> ELSE Judged(s, from + 1, deployment) \o Todo(s, from + 1, last, deployment)

(* Records that the checkpoint covers are dropped, unless the process relies on an older one. *)
Deliver(p, s, begin, last, isFresh, deployment) ==
  /\ process[p].phase = "idle" /\ begin <= acked[s] /\ begin < last /\ last <= Len(stream[s])
  /\ process' = [process EXCEPT ![p] = [phase |-> "delivered", shard |-> s, last |-> last,
                   todo |-> Todo(s, IF isFresh THEN Max({begin, checkpoint[s]}) ELSE begin, last, deployment)]]
  /\ UNCHANGED <<group, acked, checkpoint, outbox, overwritten, notices>>

Put(p, i) ==
  LET todo == process[p].todo IN
  /\ i \in DOMAIN todo /\ (i = 1 \/ ~Has("in order"))
  /\ PutInto(todo[i], p)
  /\ process' = [process EXCEPT ![p].todo = SubSeq(todo, 1, i - 1) \o SubSeq(todo, i + 1, Len(todo))]
  /\ UNCHANGED <<group, acked, checkpoint, notices>>

(* Only without the guard: a put that fails is passed over. *)
PassOver(p) ==
  /\ ~Has("failures fail") /\ process[p].todo # <<>>
  /\ process' = [process EXCEPT ![p].todo = Tail(@)]
  /\ UNCHANGED <<group, acked, checkpoint, outbox, overwritten, notices>>

(* The batch's own additions, to other items. *)
Commit(p) ==
  /\ process[p].phase = "delivered"
  /\ process' = [process EXCEPT ![p].phase = "committed"]
  /\ UNCHANGED <<group, acked, checkpoint, outbox, overwritten, notices>>

MoveCheckpoint(p) ==
  /\ process[p].phase = "committed" /\ (process[p].todo = <<>> \/ ~Has("before the checkpoint"))
  /\ checkpoint' = [checkpoint EXCEPT ![process[p].shard] = Max({@, process[p].last})]
  /\ process' = [process EXCEPT ![p].phase = "moved"]
  /\ UNCHANGED <<group, acked, outbox, overwritten, notices>>

Finish(p) ==
  /\ process[p].phase \in {"committed", "moved"} /\ process[p].todo = <<>>
  /\ acked' = [acked EXCEPT ![process[p].shard] = Max({@, process[p].last})]
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<group, checkpoint, outbox, overwritten, notices>>

(* An invocation crashes, or a put fails and with it the batch. *)
Crash(p) ==
  /\ process[p].phase # "idle"
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<group, acked, checkpoint, outbox, overwritten, notices>>

(* Only if the fold reports: it puts what it knows, or crashes.  Its batch comes again, and finds the update made. *)
Say ==
  /\ unsaid # <<>>
  /\ \/ PutInto(Head(unsaid), 0) /\ unsaid' = Tail(unsaid)
     \/ unsaid' = <<>> /\ UNCHANGED <<outbox, overwritten>>
  /\ UNCHANGED <<era, item, at, reads, stream, gone, delivery, notices>>

-----------------------------------------------------------------------------
(* The notifier.  EventBridge takes some events of a batch and refuses others; an answer gets lost. *)

Notify(begin, last, taken, heard, id) ==
  LET refused == {n \in (begin + 1)..last : n \notin taken}
      through == IF refused = {} \/ ~Has("refused is retried") THEN last ELSE Min(refused) - 1 IN
  /\ With("notifier") /\ begin <= handled /\ begin < last /\ last <= Len(outbox)
  /\ sent' = sent \cup {<<n, IF Has("id of the item") THEN outbox[n].key ELSE id>> : n \in taken}
  /\ handled' = IF heard THEN Max({handled, through}) ELSE handled
  /\ UNCHANGED <<group, delivery, outbox, overwritten>>

-----------------------------------------------------------------------------
Init ==
  /\ era = 1 /\ reads = 1
  /\ item = [g \in Generations |-> None]
  /\ at = [g \in Generations |-> 0]
  /\ stream = [s \in Shards |-> <<>>]
  /\ unsaid = <<>>
  /\ gone = {}
  /\ acked = [s \in Shards |-> 0] /\ checkpoint = [s \in Shards |-> 0]
  /\ process = [p \in Processes |-> Idle]
  /\ outbox = <<>> /\ overwritten = {}
  /\ handled = 0 /\ sent = {}

Next ==
  \/ Advance \/ Say
  \/ \E g \in Generations :
       \/ \E n \in DOMAIN Adds : Update(g, n)
       \/ Fill(g) \/ Expire(g)
  \/ \E p \in Processes :
       \/ \E s \in Shards : \E begin \in 0..acked[s] : \E last \in (begin + 1)..Len(stream[s]) : \E isFresh \in BOOLEAN :
            \E deployment \in (IF Has("by birth") THEN {None} ELSE 1..era) : Deliver(p, s, begin, last, isFresh, deployment)
       \/ \E i \in DOMAIN process[p].todo : Put(p, i)
       \/ PassOver(p) \/ Commit(p) \/ MoveCheckpoint(p) \/ Finish(p) \/ Crash(p)
  \/ \E begin \in 0..handled : \E last \in (begin + 1)..Len(outbox) : \E taken \in SUBSET ((begin + 1)..last) :
       \E heard \in BOOLEAN : \E id \in (IF Has("id of the item") THEN {0} ELSE {1, 2}) : Notify(begin, last, taken, heard, id)

-----------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

(* What makes two crossings the same: with `once`, the level and the direction, whichever generation reports. *)
Identity(c) ==
  IF Eras[c.era].once THEN <<0, 0, c.level, c.direction>> ELSE <<c.generation, c.record, c.level, c.direction>>
IsRight(c) == <<c.level, c.direction>> \in Right(Home[c.generation], c.record)
Reports(s, n) == {Identity(Crossing(stream[s][n].generation, n, x, stream[s][n].era)) : x \in Right(s, n)}
Due == UNION {UNION {Reports(s, n) : n \in DOMAIN stream[s]} : s \in Shards}
Known == {Identity(outbox[i].crossing) : i \in DOMAIN outbox}

Quiescent ==
  /\ \A p \in Processes : process[p].phase = "idle"
  /\ \A s \in Shards : acked[s] = Len(stream[s])
  /\ unsaid = <<>>

(* No crossing is reported of a generation while the one before it is folded. *)
Silent == \A i \in DOMAIN outbox :
  LET c == outbox[i].crossing
      e == stream[Home[c.generation]][c.record].era IN
  \A g \in Eras[e].folds : g >= c.generation

(* Nothing is reported that has not happened. *)
Justified == \A i \in DOMAIN outbox : IsRight(outbox[i].crossing)

(* Nothing is reported twice, and what was reported stays as it is. *)
AtMostOnce ==
  /\ \A i, j \in DOMAIN outbox : i # j => Identity(outbox[i].crossing) # Identity(outbox[j].crossing)
  /\ overwritten = {}

(* Whenever everything is delivered, every crossing of the item's own history is reported. *)
Exact == Quiescent => Due \subseteq Known

(* Records that a checkpoint covers are reported. *)
CheckpointCovers == Has("from the record") => \A s \in Shards : \A n \in 1..checkpoint[s] : Reports(s, n) \subseteq Known

(* Of one item, in the order of its records, and of one record, in the order in which the number passes lines. *)
InOrder ==
  \A i, j \in DOMAIN outbox :
    LET c == outbox[i].crossing
        d == outbox[j].crossing IN
    i < j /\ c.generation = d.generation =>
      c.record < d.record \/ (c.record = d.record /\ Before(<<c.level, c.direction>>, <<d.level, d.direction>>))

(* What the notifier has left behind was sent; each item with one id. *)
Delivered == \A n \in 1..handled : \E x \in sent : x[1] = n
OneId == \A x, y \in sent : (x[1] = y[1]) = (x[2] = y[2])

TypeOK ==
  /\ era \in DOMAIN Eras /\ reads \in Generations
  /\ \A s \in Shards : acked[s] \in 0..Len(stream[s]) /\ checkpoint[s] \in 0..Len(stream[s])
  /\ handled \in 0..Len(outbox)
=============================================================================
