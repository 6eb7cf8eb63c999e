------------------------------ MODULE Thresholds ------------------------------
(***************************************************************************)
(* Lines that a group's number crosses, each crossing reported once.       *)
(*                                                                         *)
(* Each change of a group's item is a record of the stream, with the item  *)
(* before and after it.  An invocation that is delivered the record judges *)
(* it, by the thresholds that watched at its birth, and puts an item into  *)
(* the outbox for each crossing, if it is not there, before the checkpoint *)
(* moves.  The outbox item's own record is delivered to the notifier,      *)
(* which sends an event.                                                   *)
(*                                                                         *)
(* A threshold is a name of the registry, which keeps its definition.  It  *)
(* watches from a time on at which every process knows of it; that is the  *)
(* matter of Registry.tla.  Counters.tla says that the item folds every    *)
(* source record once and in order.                                        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,         \* Stands for what is not there.
  Processes,
  Adds,         \* Of each source record: what it adds to the group.
  Plans,        \* Of each threshold, in the order in which they watch: levels, directions, burst, whether it fires once.
  Features,     \* What takes part: a subset of AllFeatures.
  Without       \* Guards that are removed: a subset of AllGuards.

AllFeatures == {"expiry", "filling", "notifier"}
AllGuards == {
  "from the record", "by birth", "removals cross nothing", "baselines cross nothing", "before the checkpoint",
  "failures fail", "condition", "in order", "key of the record", "sequence", "refused is retried", "id of the item"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  watching,    \* Thresholds up to this one watch.
  item,        \* The number that the group's item holds, or None.
  at,          \* The last source record that it has folded.
  missing,     \* What it held when it was deleted to be filled anew, until that is added again; or None.
  stream,      \* The records of the item.
  unsaid,      \* Only if the fold reports: crossings that it has not put yet.
  gone,        \* Whether the item has expired, or was deleted.
  acked,       \* Where the event source mapping stands.
  checkpoint,
  process,
  outbox,      \* Items, in the order in which they were put.
  overwritten, \* Keys of items that were put again with other content.
  handled,     \* Where the notifier's event source mapping stands.
  sent         \* Events: of which item, and with which id.

group == <<watching, item, at, missing, stream, unsaid, gone>>
delivery == <<acked, checkpoint, process>>
notices == <<handled, sent>>
vars == <<group, delivery, outbox, overwritten, notices>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features
Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE LET n == CHOOSE n \in S : TRUE IN Adds[n] + Sum(S \ {n})

Idle == [phase |-> "idle", last |-> 0, todo |-> <<>>]

-----------------------------------------------------------------------------
(* Lines. *)

Up == 1
Down == -1

(* A group that is not there holds 0. *)
Value(image) == IF image = None THEN 0 ELSE image
IsAbove(image, level) == Value(image) >= level

Crossed(old, new, plan) ==
  {<<level, direction>> \in plan.levels \X plan.directions :
     /\ IsAbove(old, level) # IsAbove(new, level)
     /\ direction = IF IsAbove(new, level) THEN Up ELSE Down}

(* In the order in which the number passes them; all go in one direction. *)
Before(x, y) == x[1] * x[2] < y[1] * y[2]
Chosen(crossed, plan) ==
  IF plan.burst = "all" THEN crossed ELSE {x \in crossed : \A y \in crossed \ {x} : Before(y, x)}

(* What a threshold must report: a REMOVE crosses nothing, nor does what a backfill adds of before. *)
Right(t, n) ==
  LET x == stream[n] IN
  IF x.new = None \/ x.baseline \/ t > x.watching THEN {} ELSE Chosen(Crossed(x.old, x.new, Plans[t]), Plans[t])

-----------------------------------------------------------------------------
(* The group: whatever changes its item makes a record. *)

Crossing(t, n, x) == [threshold |-> t, record |-> n, level |-> x[1], direction |-> x[2]]

RECURSIVE Ordered(_, _, _)
Ordered(t, n, crossed) ==
  IF crossed = {} THEN <<>>
  ELSE LET x == CHOOSE x \in crossed : \A y \in crossed \ {x} : Before(x, y) IN
       <<Crossing(t, n, x)>> \o Ordered(t, n, crossed \ {x})

(* Of all thresholds up to one. *)
RECURSIVE Judged(_, _, _, _)
Judged(old, new, n, last) ==
  IF last = 0 THEN <<>>
  ELSE Judged(old, new, n, last - 1) \o Ordered(last, n, Chosen(Crossed(old, new, Plans[last]), Plans[last]))

Becomes(new, isBaseline) ==
  /\ item' = new
  /\ stream' = Append(stream, [old |-> item, new |-> new, baseline |-> isBaseline, watching |-> watching])

(* Some source records, in one update.  If the fold reports, it knows the crossings from the answer to its update. *)
Update(n) ==
  LET new == Value(item) + Sum((at + 1)..n) IN
  /\ at < n /\ unsaid = <<>>
  /\ Becomes(new, FALSE)
  /\ at' = n
  /\ unsaid' = IF Has("from the record") THEN <<>> ELSE Judged(item, new, Len(stream) + 1, watching)
  /\ UNCHANGED <<watching, missing, gone, delivery, outbox, overwritten, notices>>

Watch ==
  /\ watching < Len(Plans)
  /\ watching' = watching + 1
  /\ UNCHANGED <<item, at, missing, stream, unsaid, gone, delivery, outbox, overwritten, notices>>

(* The item expires; late records create it again.  Or a backfill deletes it, to add later what it held. *)
Delete ==
  /\ With("expiry") \/ With("filling")
  /\ item # None /\ ~gone
  /\ Becomes(None, FALSE)
  /\ gone' = TRUE
  /\ missing' = IF With("filling") THEN item ELSE None
  /\ UNCHANGED <<watching, at, unsaid, delivery, outbox, overwritten, notices>>

Fill ==
  /\ missing # None /\ unsaid = <<>>
  /\ Becomes(Value(item) + missing, TRUE)
  /\ missing' = None
  /\ UNCHANGED <<watching, at, unsaid, gone, delivery, outbox, overwritten, notices>>

-----------------------------------------------------------------------------
(* The outbox.  An answer that is lost is a put that another delivery has made. *)

Key(c, p) ==
  <<c.threshold, IF Plans[c.threshold].once \/ ~Has("sequence") THEN 0 ELSE c.record,
    c.level, c.direction, IF Has("key of the record") THEN 0 ELSE p>>

PutInto(c, p) ==
  LET key == Key(c, p)
      there == {i \in DOMAIN outbox : outbox[i].key = key} IN
  /\ outbox' = IF there = {} THEN Append(outbox, [key |-> key, crossing |-> c]) ELSE outbox
  /\ overwritten' = IF Has("condition") \/ \A i \in there : outbox[i].crossing = c THEN overwritten ELSE overwritten \cup {key}

-----------------------------------------------------------------------------
(* Batches of the group's records, from anywhere up to where the mapping stands. *)

JudgedRecord(n, last) ==
  LET x == stream[n]
      isSilent == \/ x.new = None /\ Has("removals cross nothing")
                  \/ x.baseline /\ Has("baselines cross nothing") IN
  IF isSilent \/ ~Has("from the record") THEN <<>>
  ELSE Judged(x.old, x.new, n, IF Has("by birth") THEN x.watching ELSE last)

RECURSIVE Todo(_, _, _)
Todo(from, to, last) ==
  IF from >= to THEN <<>> ELSE JudgedRecord(from + 1, last) \o Todo(from + 1, to, last)

(* Records that the checkpoint covers are dropped, unless the process relies on an older one.                         *)
(* Without the guard "by birth", it judges by the thresholds that it knows.                                           *)
Deliver(p, begin, last, isFresh, known) ==
  /\ process[p].phase = "idle" /\ begin <= acked /\ begin < last /\ last <= Len(stream)
  /\ process' = [process EXCEPT ![p] = [phase |-> "delivered", last |-> last,
                   todo |-> Todo(IF isFresh THEN Max({begin, checkpoint}) ELSE begin, last, known)]]
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
  /\ checkpoint' = Max({checkpoint, process[p].last})
  /\ process' = [process EXCEPT ![p].phase = "moved"]
  /\ UNCHANGED <<group, acked, outbox, overwritten, notices>>

Finish(p) ==
  /\ process[p].phase \in {"committed", "moved"} /\ process[p].todo = <<>>
  /\ acked' = Max({acked, process[p].last})
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
  /\ UNCHANGED <<watching, item, at, missing, stream, gone, delivery, notices>>

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
  /\ watching = 1
  /\ item = None /\ at = 0 /\ missing = None
  /\ stream = <<>>
  /\ unsaid = <<>>
  /\ gone = FALSE
  /\ acked = 0 /\ checkpoint = 0
  /\ process = [p \in Processes |-> Idle]
  /\ outbox = <<>> /\ overwritten = {}
  /\ handled = 0 /\ sent = {}

Next ==
  \/ Watch \/ Say \/ Delete \/ Fill
  \/ \E n \in DOMAIN Adds : Update(n)
  \/ \E p \in Processes :
       \/ \E begin \in 0..acked : \E last \in (begin + 1)..Len(stream) : \E isFresh \in BOOLEAN :
            \E known \in (IF Has("by birth") THEN {0} ELSE 1..watching) : Deliver(p, begin, last, isFresh, known)
       \/ \E i \in DOMAIN process[p].todo : Put(p, i)
       \/ PassOver(p) \/ Commit(p) \/ MoveCheckpoint(p) \/ Finish(p) \/ Crash(p)
  \/ \E begin \in 0..handled : \E last \in (begin + 1)..Len(outbox) : \E taken \in SUBSET ((begin + 1)..last) :
       \E heard \in BOOLEAN : \E id \in (IF Has("id of the item") THEN {0} ELSE {1, 2}) : Notify(begin, last, taken, heard, id)

-----------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

(* What makes two crossings of a threshold the same: with `once`, the level and the direction. *)
Identity(c) == <<c.threshold, IF Plans[c.threshold].once THEN 0 ELSE c.record, c.level, c.direction>>
IsRight(c) == <<c.level, c.direction>> \in Right(c.threshold, c.record)
Reports(n) == UNION {{Identity(Crossing(t, n, x)) : x \in Right(t, n)} : t \in DOMAIN Plans}
Known == {Identity(outbox[i].crossing) : i \in DOMAIN outbox}

Quiescent ==
  /\ \A p \in Processes : process[p].phase = "idle"
  /\ acked = Len(stream)
  /\ unsaid = <<>>

(* Nothing is reported that has not happened. *)
Justified == \A i \in DOMAIN outbox : IsRight(outbox[i].crossing)

(* Nothing is reported twice, and what was reported stays as it is. *)
AtMostOnce ==
  /\ \A i, j \in DOMAIN outbox : i # j => Identity(outbox[i].crossing) # Identity(outbox[j].crossing)
  /\ overwritten = {}

(* Whenever everything is delivered, every crossing of the item's own history is reported. *)
Exact == Quiescent => UNION {Reports(n) : n \in DOMAIN stream} \subseteq Known

(* Records that a checkpoint covers are reported. *)
CheckpointCovers == Has("from the record") => \A n \in 1..checkpoint : Reports(n) \subseteq Known

(* Of a threshold, in the order of the item's records, and of one record, in the order in which the number passes lines. *)
InOrder ==
  \A i, j \in DOMAIN outbox :
    LET c == outbox[i].crossing
        d == outbox[j].crossing IN
    i < j /\ c.threshold = d.threshold =>
      c.record < d.record \/ (c.record = d.record /\ Before(<<c.level, c.direction>>, <<d.level, d.direction>>))

(* What the notifier has left behind was sent; each item with one id. *)
Delivered == \A n \in 1..handled : \E x \in sent : x[1] = n
OneId == \A x, y \in sent : (x[1] = y[1]) = (x[2] = y[2])

TypeOK ==
  /\ watching \in DOMAIN Plans
  /\ acked \in 0..Len(stream) /\ checkpoint \in 0..Len(stream)
  /\ handled \in 0..Len(outbox)
=============================================================================
