---------------------------- MODULE CountersTrace ---------------------------
(***************************************************************************)
(* Whether what the real handler did is a behavior of the specification.   *)
(*                                                                         *)
(* A trace has the records of each shard and a log: what became of the     *)
(* requests of each invocation, in the order in which they were sent,      *)
(* landed at the table, and were heard of.  A step that the specification  *)
(* does not allow is a deadlock; the last state tells which one it is.     *)
(* Times are in seconds.                                                   *)
(***************************************************************************)
EXTENDS CountersTraces

VARIABLES
  trace, step,
  remembered,  \* Of each process and shard: the checkpoint as last known, and when it was read.
  expired      \* <<item, event>>: was applied before the item expired; or the item takes nothing any more.

Tolerance == 125   \* Clocks are wrong by at most two minutes.

NoRecords == [s \in Shards |-> <<>>]
NoParents == [s \in Shards |-> None]
InStep == [p \in Processes |-> 0]
OneForAll == [i \in Items |-> 1]

Log == Traces[trace].log

(* Of each record: the items in which it counts by the registry, and the images that quarantine must have. *)
Records(rows) == [n \in 1..Len(rows) |->
  [event |-> rows[n].event, items |-> rows[n].items, folds |-> rows[n].items, aside |-> rows[n].aside,
   only |-> None]]

TraceInit ==
  /\ trace \in 1..Len(Traces) /\ step = 1 /\ expired = {}
  /\ remembered = [p \in Processes |-> [s \in Shards |-> None]]
  /\ stream = [s \in Shards |-> IF s <= Len(Traces[trace].streams) THEN Records(Traces[trace].streams[s]) ELSE <<>>]
  /\ Empty

Stays == UNCHANGED <<now, stream, acked, pruner, observed, remembered>>
TableOnly == Stays /\ UNCHANGED process
ProcessOnly == Stays /\ UNCHANGED <<table, control, quarantine>>

InTime(e) == now <= e.deadline + Landing

(* Time passes; what dies of it, the log tells. *)
Passes(e) == now' = e.now /\ UNCHANGED <<stream, acked, process, table, books, pruner, observed, remembered>>

Begins(e) ==
  LET warm == IF e.cold THEN None ELSE remembered[e.process][e.shard]
      memory == IF warm = None THEN Cold
                ELSE [Cold EXCEPT !.known = warm.known, !.of = e.shard, !.readAt = warm.readAt] IN
  /\ Deliver(e.process, e.shard, e.begin, e.last, memory, e.deadline)
  /\ remembered' = IF e.cold THEN [remembered EXCEPT ![e.process] = [s \in Shards |-> None]] ELSE remembered

Copies(e) == UseCopy(e.process) /\ UNCHANGED remembered

Reads(e) ==
  /\ e.found = control[e.shard] /\ process[e.process].phase \in {"starting", "dividing"}
  /\ process' = [process EXCEPT ![e.process] = Informed(@, e.found, now)]
  /\ ProcessOnly

Counting(r, n) == CountsIn(stream[r.shard][n], None)
Images(s, n) == {x.image : x \in {y \in quarantine : y.shard = s /\ y.sequence = n}}
(* Whatever of a record is not counted is in quarantine. *)
Kept(r, n) ==
  stream[r.shard][n].aside \subseteq Images(r.shard, n)

Reached(r) == IF r.phase = "dividing" THEN r.begin ELSE r.last

(* The next part: what of it cannot be folded is in quarantine. *)
Parts(e) ==
  LET r == process[e.process]
      part == (Reached(r) + 1)..e.last IN
  /\ r.phase = "dividing" \/ (r.phase = "committing" /\ Lacking(r) = {})
  /\ part # {} /\ e.last <= r.end
  /\ (\A n \in part : Kept(r, n)) = TRUE
  /\ process' = [process EXCEPT ![e.process] =
       [r EXCEPT !.phase = "committing", !.last = e.last, !.after = [i \in Items |-> Reached(r)]]]
  /\ ProcessOnly

(* An earlier delivery to the process has written these records to the item, before it failed. *)
Skips(e) ==
  LET r == process[e.process] IN
  /\ r.phase = "committing"
  /\ \A n \in Delta(r, e.item) : n <= e.through => <<e.item, stream[r.shard][n].event>> \in counted \cup expired
  /\ process' = [process EXCEPT ![e.process].after[e.item] = IF e.through < @ THEN @ ELSE IF e.through > r.last THEN r.last ELSE e.through]
  /\ ProcessOnly

(* The item takes not even a watermark: its records are in quarantine, one by one. *)
GivesUp(e) == process' = [process EXCEPT ![e.process].after[e.item] = e.last] /\ ProcessOnly
GivenUp(e) ==
  LET r == process[e.process] IN {<<e.item, stream[r.shard][n].event>> : n \in {m \in Delta(r, e.item) : m <= e.last}}

UpdateSent(e) ==
  LET r == process[e.process]
      delta == Delta(r, e.item) IN
  /\ r.phase = "committing" /\ r.shard = e.shard /\ delta # {}
  /\ e.first = Min(delta) /\ e.last = Max(delta)
  /\ UNCHANGED <<vars, remembered>>

Of(x) == CountsIn(x, None)
Added(e) == {n \in e.first..e.last : e.item \in Of(stream[e.shard][n])}

UpdateLanded(e) ==
  /\ InTime(e)
  /\ e.accepted <=> Accepts(watermark[e.item][e.shard], Added(e))
  /\ UpdateLands(e.item, e.shard, Added(e))
  /\ TableOnly /\ UNCHANGED <<control, quarantine>>

UpdateHeard(e) ==
  /\ process' = [process EXCEPT ![e.process] =
       Answered(@, e.item, Added(e), IF e.accepted THEN 0 ELSE e.mark)]
  /\ ProcessOnly

MoveSent(e) ==
  LET r == process[e.process] IN
  /\ r.phase = "committing" \/ r.begin = r.end
  /\ MayMove(r) /\ r.shard = e.shard /\ r.last = e.through
  /\ e.at >= r.deadline - Tolerance /\ e.at <= r.deadline + Tolerance
  /\ UNCHANGED <<vars, remembered>>

CoveredOrExpired(s, through) ==
  \A n \in 1..through :
    Images(s, n) = {} => \A i \in Of(stream[s][n]) : <<i, stream[s][n].event>> \in counted \cup expired

MoveLanded(e) ==
  LET c == control[e.shard] IN
  /\ InTime(e)
  /\ e.accepted <=> MoveHolds(c, e.through)
  /\ (e.accepted => CoveredOrExpired(e.shard, e.through)) = TRUE
  /\ control' =
       IF e.accepted THEN [control EXCEPT ![e.shard] = Moved(e.through, e.at)] ELSE control
  /\ TableOnly /\ UNCHANGED <<table, quarantine>>

MoveHeard(e) ==
  /\ process' = [process EXCEPT ![e.process].known =
       IF e.accepted THEN Moved(e.through, e.at) ELSE None]
  /\ ProcessOnly

(* An entry that is there stays as it is. *)
KeepLanded(e) ==
  LET entry == [shard |-> e.shard, sequence |-> e.sequence, image |-> e.image] IN
  /\ InTime(e)
  /\ e.accepted <=> entry \notin quarantine
  /\ quarantine' = quarantine \cup {entry}
  /\ TableOnly /\ UNCHANGED <<table, control>>

Guardless(x) ==
  \/ now + Tolerance > x.created + KeptFor
  \/ \E n \in 1..step : LET e == Log[n] IN
       e.op = "move landed" /\ e.accepted /\ e.shard = x.shard /\ x.value <= e.through /\ Ripe(e.at, now + Tolerance)

PruneLanded(e) ==
  /\ e.accepted => \A x \in e.removed : watermark[e.item][x.shard] = x.value /\ Guardless(x)
  /\ watermark' =
       IF ~e.accepted THEN watermark
       ELSE [watermark EXCEPT ![e.item] = [s \in Shards |->
              IF \E x \in e.removed : x.shard = s THEN 0 ELSE @[s]]]
  /\ TableOnly /\ UNCHANGED <<touched, counted, recounted, control, quarantine>>

(* An item's time to live is over: the table deletes it, with its watermarks.  What comes late begins anew. *)
CountedIn(item) == {x \in counted : x[1] = item}
Expires(e) ==
  /\ watermark' = [watermark EXCEPT ![e.item] = [s \in Shards |-> 0]]
  /\ counted' = counted \ CountedIn(e.item)
  /\ TableOnly /\ UNCHANGED <<touched, recounted, control, quarantine>>

Remembers(p) ==
  LET r == process[p] IN
  remembered' = IF r.of # r.shard THEN remembered
                ELSE [remembered EXCEPT ![p][r.shard] =
                       IF r.known = None THEN None ELSE [known |-> r.known, readAt |-> r.readAt]]

(* What remains of the batch counts nowhere, or waits. *)
Finishes(e) ==
  LET r == process[e.process] IN
  /\ Running(e.process) /\ r.phase \in {"dividing", "committing"} /\ Lacking(r) = {}
  /\ TRUE = \A n \in (Reached(r) + 1)..r.end : Counting(r, n) = {} /\ Kept(r, n)
  /\ acked' = [acked EXCEPT ![r.shard] = IF r.end > @ THEN r.end ELSE @]
  /\ process' = [process EXCEPT ![e.process] = Rested(r)]
  /\ UNCHANGED <<now, stream, table, books, pruner, observed>>

Ends(e) ==
  CASE e.how = "finished" -> Finishes(e) /\ Remembers(e.process)
    [] e.how = "failed" -> Fail(e.process) /\ Remembers(e.process)
    [] e.how = "crashed" -> Crash(e.process) /\ UNCHANGED remembered

Does(e) ==
  CASE e.op = "time" -> Passes(e)
    [] e.op = "begin" -> Begins(e)
    [] e.op = "copy" -> Copies(e)
    [] e.op = "read" -> Reads(e)
    [] e.op = "part" -> Parts(e)
    [] e.op = "skip" -> Skips(e)
    [] e.op = "give up" -> GivesUp(e)
    [] e.op = "update sent" -> UpdateSent(e)
    [] e.op = "update landed" -> UpdateLanded(e)
    [] e.op = "update heard" -> UpdateHeard(e)
    [] e.op = "move sent" -> MoveSent(e)
    [] e.op = "move landed" -> MoveLanded(e)
    [] e.op = "move heard" -> MoveHeard(e)
    [] e.op = "keep landed" -> KeepLanded(e)
    [] e.op = "prune landed" -> PruneLanded(e)
    [] e.op = "expired" -> Expires(e)
    [] e.op = "end" -> Ends(e)

TraceNext ==
  \/ /\ step <= Len(Log)
     /\ Does(Log[step])
     /\ expired' = IF Log[step].op = "expired" THEN expired \cup CountedIn(Log[step].item)
                   ELSE IF Log[step].op = "give up" THEN expired \cup GivenUp(Log[step])
                   ELSE expired
     /\ step' = step + 1 /\ UNCHANGED trace
  \/ step > Len(Log) /\ UNCHANGED <<vars, trace, step, remembered, expired>>

(* A position has one state. *)
Position == <<trace, step>>
=============================================================================
