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
  expired      \* <<item, event>>: was applied, before the item expired.

Tolerance == 125   \* Clocks are wrong by at most two minutes.

NoRecords == [s \in Shards |-> <<>>]
NoParents == [s \in Shards |-> None]
InStep == [p \in Processes |-> 0]

Log == Traces[trace].log

TraceInit ==
  /\ trace \in 1..Len(Traces) /\ step = 1 /\ expired = {}
  /\ remembered = [p \in Processes |-> [s \in Shards |-> None]]
  /\ stream = [s \in Shards |-> IF s <= Len(Traces[trace].streams) THEN Traces[trace].streams[s] ELSE <<>>]
  /\ Empty

Stays == UNCHANGED <<now, deployed, stream, acked, token, switched, pruner, remembered>>
TableOnly == Stays /\ UNCHANGED process
ProcessOnly == Stays /\ UNCHANGED <<table, control, witness, quarantine>>

InTime(e) == now <= e.deadline + Landing

(* Time passes; what dies of it, the log tells. *)
Passes(e) == now' = e.now /\ UNCHANGED <<deployed, stream, acked, process, table, control, witness,
                                         token, switched, quarantine, pruner, remembered>>

Begins(e) ==
  LET warm == IF e.cold THEN None ELSE remembered[e.process][e.shard]
      fresh == [Cold EXCEPT !.deployment = e.deployment]
      memory == IF warm = None THEN fresh
                ELSE [fresh EXCEPT !.known = warm.known, !.of = e.shard, !.readAt = warm.readAt] IN
  /\ Deliver(e.process, e.shard, e.begin, e.last, memory, e.deadline)
  /\ remembered' = IF e.cold THEN [remembered EXCEPT ![e.process] = [s \in Shards |-> None]] ELSE remembered

Copies(e) == UseCopy(e.process) /\ UNCHANGED remembered

Reads(e) ==
  IF e.found = None
  THEN control[e.shard] = None /\ UNCHANGED <<vars, remembered>>
  ELSE e.found = control[e.shard] /\ ReadCheckpoint(e.process) /\ UNCHANGED remembered

CreateLands(e) ==
  /\ InTime(e)
  /\ e.accepted <=> control[e.shard] = None
  /\ control' = IF e.accepted THEN [control EXCEPT ![e.shard] = e.created] ELSE control
  /\ witness' = IF e.accepted THEN [witness EXCEPT ![e.shard] = [format |-> e.created.format, moved |-> FALSE]]
                ELSE witness
  /\ TableOnly /\ UNCHANGED <<table, quarantine>>

CreateHeard(e) ==
  /\ process[e.process].phase = "starting"
  /\ process' = [process EXCEPT ![e.process] = Informed(@, e.created, now)]
  /\ ProcessOnly

(* Which records of the batch are too old to be folded: at least those that must be. *)
SetsAside(e) ==
  LET r == process[e.process] IN
  /\ r.phase = "committing"
  /\ e.before >= e.clock - Guarantee
  /\ (UsesCheckpoints(r) /\ r.known.lostBefore # None) => e.before >= r.known.lostBefore
  /\ process' = [process EXCEPT ![e.process].skipped =
       {n \in (r.begin + 1)..r.last : stream[r.shard][n].born < e.before}]
  /\ ProcessOnly

UpdateSent(e) ==
  LET r == process[e.process]
      delta == Delta(r, e.item)
      kept == {n \in (r.begin + 1)..r.last :
                 stream[r.shard][n].poisoned \/ (n \in r.skipped /\ stream[r.shard][n].items # {})} IN
  /\ r.phase = "committing" /\ r.shard = e.shard /\ delta # {}
  /\ e.first = Min(delta) /\ e.last = Max(delta) /\ e.format = Format(r)
  /\ kept \subseteq Held(r.shard)
  /\ UNCHANGED <<vars, remembered>>

Added(e) == {n \in e.first..e.last : n \notin e.skipped /\ e.item \in stream[e.shard][n].items}

UpdateLanded(e) ==
  /\ InTime(e)
  /\ e.accepted <=> Accepts(watermark[e.item][e.shard][e.format], Added(e))
  /\ UpdateLands(e.item, e.shard, e.format, Added(e))
  /\ TableOnly /\ UNCHANGED <<control, witness, quarantine>>

UpdateHeard(e) ==
  /\ process' = [process EXCEPT ![e.process] =
       Answered(@, e.item, Added(e), IF e.accepted THEN 0 ELSE e.mark)]
  /\ ProcessOnly

MoveSent(e) ==
  LET r == process[e.process] IN
  /\ MayMove(r) /\ r.shard = e.shard /\ r.last = e.through
  /\ e.at >= r.deadline - Tolerance /\ e.at <= r.deadline + Tolerance
  /\ e.marks = ReplacesMark(r.known, e.clock)
  /\ e.marks => e.settled = SettledThrough(r.known, e.clock)
  /\ UNCHANGED <<vars, remembered>>

CoveredOrExpired(s, through) ==
  \A n \in 1..through :
    \/ n \in Held(s)
    \/ \A i \in stream[s][n].items : <<i, stream[s][n].event>> \in counted \cup expired

MoveLanded(e) ==
  LET c == control[e.shard] IN
  /\ InTime(e)
  /\ e.accepted <=> MoveHolds(c, e.through)
  /\ e.accepted => CoveredOrExpired(e.shard, e.through)
  /\ control' =
       IF ~e.accepted THEN control
       ELSE IF e.marks
       THEN [control EXCEPT ![e.shard] = [c EXCEPT !.checkpoint = e.through, !.at = e.at, !.seen = e.at,
                                                  !.mark = e.through, !.markAt = e.at, !.settled = e.settled]]
       ELSE [control EXCEPT ![e.shard] = [c EXCEPT !.checkpoint = e.through, !.at = e.at, !.seen = e.at]]
  /\ TableOnly /\ UNCHANGED <<table, witness, quarantine>>

MoveHeard(e) ==
  /\ process' = [process EXCEPT ![e.process].known =
       IF e.accepted THEN Moved(@, @, e.through, e.at, e.clock) ELSE None]
  /\ ProcessOnly

WakeLanded(e) ==
  /\ InTime(e)
  /\ e.accepted <=> control[e.shard] # None
  /\ control' = IF e.accepted THEN [control EXCEPT ![e.shard].seen = e.at] ELSE control
  /\ TableOnly /\ UNCHANGED <<table, witness, quarantine>>

KeepLanded(e) ==
  /\ InTime(e)
  /\ quarantine' = quarantine \cup {Entry(e.shard, n, "waiting") : n \in e.kept}
  /\ TableOnly /\ UNCHANGED <<table, control, witness>>

(* Settled, or of a shard that was silent for long; `old` ones of shards without checkpoint are told by their age. *)
Guardless(x) ==
  \/ x.old
  \/ /\ control[x.shard] # None
     /\ \/ x.value <= SettledThrough(control[x.shard], now + Tolerance)
        \/ now + Tolerance > control[x.shard].seen + Outlived

PruneLanded(e) ==
  /\ e.accepted => \A x \in e.removed :
       watermark[e.item][x.shard][x.format] = x.value /\ Guardless(x)
  /\ watermark' =
       IF ~e.accepted THEN watermark
       ELSE [watermark EXCEPT ![e.item] = [s \in Shards |-> [f \in Formats |->
              IF \E x \in e.removed : x.shard = s /\ x.format = f THEN 0 ELSE @[s][f]]]]
  /\ TableOnly /\ UNCHANGED <<touched, counted, recounted, control, witness, quarantine>>

(* An item's time to live is over: the table deletes it, with its watermarks.  What comes late begins anew. *)
CountedIn(item) == {x \in counted : x[1] = item}
Expires(e) ==
  /\ watermark' = [watermark EXCEPT ![e.item] = [s \in Shards |-> [f \in Formats |-> 0]]]
  /\ counted' = counted \ CountedIn(e.item)
  /\ TableOnly /\ UNCHANGED <<touched, recounted, control, witness, quarantine>>

Remembers(p) ==
  LET r == process[p] IN
  remembered' = IF r.of # r.shard THEN remembered
                ELSE [remembered EXCEPT ![p][r.shard] =
                       IF r.known = None THEN None ELSE [known |-> r.known, readAt |-> r.readAt]]

Ends(e) ==
  CASE e.how = "finished" -> Finish(e.process) /\ Remembers(e.process)
    [] e.how = "failed" -> Fail(e.process) /\ Remembers(e.process)
    [] e.how = "crashed" -> Crash(e.process) /\ UNCHANGED remembered

Does(e) ==
  CASE e.op = "time" -> Passes(e)
    [] e.op = "begin" -> Begins(e)
    [] e.op = "copy" -> Copies(e)
    [] e.op = "read" -> Reads(e)
    [] e.op = "create landed" -> CreateLands(e)
    [] e.op = "create heard" -> CreateHeard(e)
    [] e.op = "set aside" -> SetsAside(e)
    [] e.op = "update sent" -> UpdateSent(e)
    [] e.op = "update landed" -> UpdateLanded(e)
    [] e.op = "update heard" -> UpdateHeard(e)
    [] e.op = "move sent" -> MoveSent(e)
    [] e.op = "move landed" -> MoveLanded(e)
    [] e.op = "move heard" -> MoveHeard(e)
    [] e.op = "wake landed" -> WakeLanded(e)
    [] e.op = "keep landed" -> KeepLanded(e)
    [] e.op = "prune landed" -> PruneLanded(e)
    [] e.op = "expired" -> Expires(e)
    [] e.op = "end" -> Ends(e)

TraceNext ==
  \/ /\ step <= Len(Log)
     /\ Does(Log[step])
     /\ expired' = IF Log[step].op = "expired" THEN expired \cup CountedIn(Log[step].item) ELSE expired
     /\ step' = step + 1 /\ UNCHANGED trace
  \/ step > Len(Log) /\ UNCHANGED <<vars, trace, step, remembered, expired>>

(* A position has one state. *)
Position == <<trace, step>>
=============================================================================
