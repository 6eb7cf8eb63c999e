-------------------------------- MODULE Verify --------------------------------
(***************************************************************************)
(* Is a count right, while traffic flows?  And if not, putting it right.   *)
(*                                                                         *)
(* The baseline of a group at the cut is known, by Backfill.tla.  From the *)
(* cut on, the log has what each record adds.  The checkpoint and the      *)
(* watermark of the group's item tell up to which record it has counted:   *)
(* its position.  What is expected there, less what the item holds, is the *)
(* drift.  It does not depend on the position; so it can be added later.   *)
(*                                                                         *)
(* One shard, one group; sequence numbers count from 1.                    *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,       \* Stands for what is not there.
  Adds,       \* What each record adds.
  AtFirst,    \* What the group counted before.
  CutAt,      \* The first record past the cut.
  Processes,  \* Execution environments of the aggregator.
  Verifiers,
  Features,   \* What takes part: a subset of AllFeatures.
  Without     \* Guards that are removed: a subset of AllGuards.

AllFeatures == {"corruption", "loss", "pruning", "ending"}
AllGuards == {"checkpoint", "watermark", "checkpoint first", "log last", "logged before commit",
              "fresh checkpoint", "read again", "repair mark", "parts", "still open"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  written,    \* How many records there are.
  acked, checkpoint,
  settled,    \* The checkpoint that allows to prune.
  process,
  item,       \* The group's item, or None.
  log,        \* Records that are logged.
  spoiled,    \* Whether somebody has spoiled the item.
  verifier,
  open,       \* Whether the run is; nobody logs for it afterwards.
  found       \* Drifts that were found: whether the item had been spoiled, and the drift.

vars == <<written, acked, checkpoint, settled, process, item, log, spoiled, verifier, open, found>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features
Max(S) == CHOOSE n \in S : \A m \in S : m <= n

RECURSIVE Total(_)
Total(S) == IF S = {} THEN 0 ELSE LET n == CHOOSE n \in S : TRUE IN Adds[n] + Total(S \ {n})

ValueOf(i) == IF i = None THEN 0 ELSE i.value
WatermarkOf(i) == IF i = None THEN 0 ELSE i.watermark
MarkOf(i) == IF i = None THEN 0 ELSE i.mark
Truth == AtFirst + Total(1..acked)

Idle == [phase |-> "idle", from |-> 0, last |-> 0]
Away == [phase |-> "away", checkpoint |-> 0, item |-> None, log |-> {}, drift |-> 0]

-----------------------------------------------------------------------------
(* The aggregator: Counters.tla, in short.  A redelivery that writes a lost item anew gives it too low a position: *)
(* only a later verification finds the rest.  So there is none where items get lost.                              *)

Write ==
  /\ written < Len(Adds)
  /\ written' = written + 1
  /\ UNCHANGED <<acked, checkpoint, settled, process, item, log, spoiled, verifier, found>>

Deliver(p, begin, last) ==
  /\ process[p].phase = "idle" /\ begin <= acked /\ (With("loss") => begin = acked) /\ last <= written /\ Max({begin, checkpoint}) < last
  /\ Has("parts") => (last < CutAt \/ Max({begin, checkpoint}) >= CutAt - 1)
  /\ process' = [process EXCEPT ![p] =
       [phase |-> IF Has("logged before commit") THEN "logging" ELSE "committing", from |-> Max({begin, checkpoint}), last |-> last]]
  /\ UNCHANGED <<written, acked, checkpoint, settled, item, log, spoiled, verifier, found>>

(* What comes after the cut is a part of its own, logged when the part before it is counted. *)
NextPart(p, last) ==
  /\ process[p].phase = "committed" /\ process[p].last = CutAt - 1
  /\ process' = [process EXCEPT ![p] =
       [phase |-> IF Has("logged before commit") THEN "logging" ELSE "committing", from |-> CutAt - 1, last |-> last]]
  /\ UNCHANGED <<written, acked, checkpoint, settled, item, log, spoiled, verifier, found>>

Log(p) ==
  /\ process[p].phase = "logging"
  /\ log' = log \cup {n \in (process[p].from + 1)..process[p].last : open /\ n >= CutAt}
  /\ process' = [process EXCEPT ![p].phase = IF Has("logged before commit") THEN "committing" ELSE "committed"]
  /\ UNCHANGED <<written, acked, checkpoint, settled, item, spoiled, verifier, found>>

Commit(p) ==
  LET r == process[p]
      delta == {n \in (r.from + 1)..r.last : n > WatermarkOf(item)} IN
  /\ r.phase = "committing"
  /\ item' = IF delta = {} THEN item
             ELSE [value |-> ValueOf(item) + Total(delta), watermark |-> r.last, mark |-> MarkOf(item)]
  /\ process' = [process EXCEPT ![p].phase = IF Has("logged before commit") THEN "committed" ELSE "logging"]
  /\ UNCHANGED <<written, acked, checkpoint, settled, log, spoiled, verifier, found>>

Move(p) ==
  /\ process[p].phase = "committed" /\ process[p].last > checkpoint
  /\ checkpoint' = process[p].last
  /\ UNCHANGED <<written, acked, settled, process, item, log, spoiled, verifier, found>>

Finish(p) ==
  /\ process[p].phase = "committed"
  /\ acked' = Max({acked, process[p].last})
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<written, checkpoint, settled, item, log, spoiled, verifier, found>>

Crash(p) ==
  /\ process[p].phase # "idle"
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<written, acked, checkpoint, settled, item, log, spoiled, verifier, found>>

(* Settled when no invocation that began before its stamp is left, which is long after any verifier has read both. *)
Settle ==
  /\ With("pruning") /\ settled < checkpoint
  /\ \A p \in Processes : process[p].phase # "idle" => process[p].from >= checkpoint
  /\ Has("fresh checkpoint") => \A v \in Verifiers : verifier[v].phase = "checkpoint read" => checkpoint <= verifier[v].checkpoint
  /\ settled' = checkpoint
  /\ UNCHANGED <<written, acked, checkpoint, process, item, log, spoiled, verifier, found>>

Prune ==
  /\ item # None /\ item.watermark > 0 /\ item.watermark <= settled
  /\ item' = [item EXCEPT !.watermark = 0]
  /\ UNCHANGED <<written, acked, checkpoint, settled, process, log, spoiled, verifier, found>>

(* Somebody spoils the item, once, by hand. *)
Spoil ==
  /\ With("corruption") /\ ~spoiled /\ item # None
  /\ item' = [item EXCEPT !.value = @ + 1000]
  /\ spoiled' = TRUE
  /\ UNCHANGED <<written, acked, checkpoint, settled, process, log, verifier, found>>
Lose ==
  /\ With("loss") /\ ~spoiled /\ item # None
  /\ item' = None
  /\ spoiled' = TRUE
  /\ UNCHANGED <<written, acked, checkpoint, settled, process, log, verifier, found>>

-----------------------------------------------------------------------------
(* Verifiers. *)

Only == UNCHANGED <<written, acked, checkpoint, settled, process, item, log, spoiled>>
Steps(v, phase) == verifier[v].phase = phase

(* The checkpoint, then the item, then the log. *)
ReadCheckpoint(v) ==
  /\ Steps(v, IF Has("checkpoint first") THEN "away" ELSE "item read")
  /\ verifier' = [verifier EXCEPT ![v].checkpoint = checkpoint, ![v].phase = IF Has("checkpoint first") THEN "checkpoint read" ELSE "read",
                                  ![v].log = IF Has("log last") THEN {} ELSE log]
  /\ UNCHANGED found /\ Only

ReadItem(v) ==
  /\ Steps(v, IF Has("checkpoint first") THEN "checkpoint read" ELSE "away")
  /\ verifier' = [verifier EXCEPT ![v].item = item, ![v].phase = IF Has("checkpoint first") THEN "read" ELSE "item read"]
  /\ UNCHANGED found /\ Only

Position(r) == Max({CutAt - 1}
                   \cup (IF Has("watermark") THEN {WatermarkOf(r.item)} ELSE {})
                   \cup (IF Has("checkpoint") THEN {r.checkpoint} ELSE {}))

(* Of an item that is missing, nobody knows what it had counted beyond the checkpoint. *)
Compare(v) ==
  LET r == verifier[v]
      known == IF Has("log last") THEN log ELSE r.log
      position == Position(r)
      drift == AtFirst + Total(1..(CutAt - 1)) + Total({n \in known : n <= position}) - ValueOf(r.item)
      unknown == r.item = None /\ Has("read again") /\ \E n \in known : n > position
      void == unknown \/ (Has("still open") /\ ~open) IN
  /\ Steps(v, "read")
  /\ verifier' = [verifier EXCEPT ![v] = IF void \/ drift = 0 THEN Away ELSE [r EXCEPT !.phase = "drift", !.drift = drift]]
  /\ found' = IF void THEN found ELSE found \cup {<<spoiled, drift>>}
  /\ Only

(* Added if nobody has repaired the item since it was read. *)
Repair(v) ==
  LET r == verifier[v] IN
  /\ Steps(v, "drift")
  /\ item' = IF MarkOf(item) = MarkOf(r.item) \/ ~Has("repair mark")
             THEN [value |-> ValueOf(item) + r.drift, watermark |-> WatermarkOf(item), mark |-> MarkOf(item) + 1]
             ELSE item
  /\ verifier' = [verifier EXCEPT ![v] = Away]
  /\ UNCHANGED <<written, acked, checkpoint, settled, process, log, spoiled, found>>

Init ==
  /\ written = CutAt - 1 /\ acked = 0 /\ checkpoint = 0 /\ settled = 0
  /\ process = [p \in Processes |-> Idle]
  /\ item = [value |-> AtFirst, watermark |-> 0, mark |-> 0]
  /\ log = {} /\ spoiled = FALSE /\ open = TRUE /\ found = {}
  /\ verifier = [v \in Verifiers |-> Away]

(* A verification begins to compare when the log says that the shard is past its cut. *)
Past == acked >= CutAt - 1 \/ log # {}

(* Whoever has compared ends the run, for all verifiers that work on it. *)
End ==
  /\ With("ending") /\ open /\ found # {}
  /\ open' = FALSE
  /\ UNCHANGED <<written, acked, checkpoint, settled, process, item, log, spoiled, verifier, found>>

Step ==
  \/ Write \/ Settle \/ Prune \/ Spoil \/ Lose
  \/ \E p \in Processes :
       \/ \E begin \in 0..acked : \E last \in (begin + 1)..written : Deliver(p, begin, last)
       \/ \E last \in CutAt..written : NextPart(p, last)
       \/ Log(p) \/ Commit(p) \/ Move(p) \/ Finish(p) \/ Crash(p)
  \/ \E v \in Verifiers : (Past /\ (ReadCheckpoint(v) \/ ReadItem(v))) \/ Compare(v) \/ Repair(v)

Next == End \/ (Step /\ UNCHANGED open)

-----------------------------------------------------------------------------
(* What is right has no drift, wherever the item's position is. *)
NoFalseDrift == \A x \in found : ~x[1] => x[2] = 0

Quiescent ==
  /\ \A p \in Processes : process[p].phase = "idle"
  /\ acked = written

(* Whenever everything is acknowledged, the count is right if it was not spoiled, or has been repaired. *)
Exact == Quiescent /\ (~spoiled \/ MarkOf(item) > 0) => ValueOf(item) = Truth

TypeOK == item # None => item.watermark \in 0..written
=============================================================================
