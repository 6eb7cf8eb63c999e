---------------------------- MODULE BackfillMC ----------------------------
(* What TLC explores: small constants, and a view in which states that differ only in what matters no more are one. *)
EXTENDS Backfill

OneKey == <<<<1, 3, 7>>>>
Inserted == <<<<0, 1, 3>>>>
Deleted == <<<<5, 0>>>>
OneChange == <<<<1, 3>>>>
TwoKeys == <<<<1, 3>>, <<10, 30>>>>
FirstShard == <<1>>
FirstShards == <<1, 2>>
NoParents == [s \in Shards |-> None]
Rollover == <<None, 1>>

-----------------------------------------------------------------------------
(* Time goes on without end: of a time matters how long ago it was, and that only so far. *)
Ago(time, least) == IF time = None THEN None ELSE IF time - now < least THEN least ELSE time - now

(* Of a time of creation matters on which side of a few others it is. *)
Side(created) ==
  IF run.since = None THEN Ago(created, -2 * Clocks - 1)
  ELSE <<IF created >= run.since THEN 0 ELSE IF created >= run.since - 2 * Clocks THEN 1 ELSE 2,
         run.ended # None /\ created > run.ended + Clocks,
         run.ended = None /\ With("quiet end") /\ created > now>>

SeenRecord(x) == <<x.key, x.old, x.new, Side(x.created)>>
SeenRun ==
  [run EXCEPT !.since = Ago(@, -Settled - Clocks), !.asked = IF run.openedAt # None /\ run.phase # "opening" THEN 0 ELSE Ago(@, -Landing - 1),
              !.openedAt = Ago(@, -Fresh - 1), !.ended = IF With("quiet end") \/ With("read only") THEN Ago(@, -2 * Clocks - 1) ELSE 0]
Times(all, x) == Cardinality({r \in DOMAIN all : all[r] = x})
Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Times(all, x)]

(* Of the log: the earliest change of each item, and who has acknowledged. *)
First(k) == LET all == Changes(k) IN
  IF all = {} THEN None ELSE CHOOSE x \in all : \A y \in all : Before(x, y) \/ x = y
SeenLog ==
  IF ~(Has("first in name") /\ Has("last in name") /\ Has("first image") /\ Has("lineage")) \/ With("quiet end") THEN log
  ELSE <<[k \in Keys |-> First(k)], {x.shard : x \in {y \in log : HasBeat(y)}},
         IF With("read only") THEN [s \in Shards |-> LoggedTo(s)] ELSE 0>>

View ==
  <<[s \in Shards |-> [n \in 1..Len(stream[s]) |-> SeenRecord(stream[s][n])]], image, closed, acked, checkpoint,
    Bag(process), counted, base, cut, SeenLog, pages, SeenRun, Bag(runner)>>
=============================================================================
