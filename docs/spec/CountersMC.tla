----------------------------- MODULE CountersMC -----------------------------
(* What TLC explores: small constants, and a view that makes the state space finite although time goes on. *)
EXTENDS Counters

(* An event counts in items; the names of some may not be able to fold it. *)
Of(event, items, folds) == [event |-> event, items |-> items, folds |-> folds, only |-> None]
Record(event, items) == Of(event, items, items)

OneEach == [i \in Items |-> i]

NoRecords == [s \in Shards |-> <<>>]
NoParents == [s \in Shards |-> None]
InStep == [p \in Processes |-> 0]
Apart == [p \in Processes |-> IF p = 1 THEN 0 ELSE 1]

One == <<<<Record("a", {1})>>>>
Two == <<<<Record("a", {1}), Record("b", {1})>>>>
Mixed == <<<<Record("a", {1, 2}), Record("b", {2})>>>>
Crossed == <<<<Record("a", {1, 2}), Record("b", {1})>>, <<Record("c", {1, 2}), Record("d", {2})>>>>
Wider == <<<<Record("a", {1, 2}), Record("b", {2}), Record("c", {1})>>, <<Record("d", {2}), Record("e", {1, 2})>>>>
Split == <<<<Record("a", {1, 2}), Record("b", {1})>>, <<Record("c", {1, 2})>>, <<Record("d", {1})>>>>
OneParent == <<None, 1, 1>>

OneFoldedLess == <<<<Of("a", {1, 2}, {1})>>>>

-----------------------------------------------------------------------------
(* Only how long ago something was matters, and that only so far. *)

Ago(time, most) == IF time - now < -most THEN -most ELSE time - now

SeenControl(c) == [c EXCEPT !.at = IF With("pruning") THEN Ago(@, Settling + 3) ELSE 0]

SeenProcess(p) ==
  LET r == process[p]
      stale == r.phase \in {"idle", "starting"} /\ ~With("copies")
      known == IF r.known = None \/ stale THEN None
               ELSE SeenControl([r.known EXCEPT !.at = now]) IN
  IF r.phase = "cold" \/ (r.phase = "idle" /\ known = None)
  THEN <<"cold">> ELSE
  <<r.phase, r.shard, r.last, r.end, known,
    IF known = None \/ ~With("copies") THEN None ELSE <<r.of, Ago(r.readAt, Fresh + 1)>>,
    IF Running(p) THEN Ago(r.deadline, Landing + 1) ELSE 0,
    IF r.phase = "committing" THEN <<[i \in Items |-> Delta(r, i)], IF Has("quarantined first") THEN 0 ELSE r.begin>>
    ELSE <<r.begin>>>>

(* Processes whose clocks agree differ in nothing but what they do. *)
SeenProcesses ==
  LET seen == [p \in Processes |-> SeenProcess(p)] IN
  IF \E p, q \in Processes : Clock[p] # Clock[q] THEN seen
  ELSE [r \in {seen[p] : p \in Processes} |-> Cardinality({p \in Processes : seen[p] = r})]

(* Redrives may go on for ever: one is explored. *)
Bounded ==
  \A s \in Shards : Len(stream[s]) <= Len(Streams[s]) + (IF Has("redriven once") THEN 1 ELSE 2)

View ==
  <<acked, SeenProcesses, watermark, counted, recounted, quarantine,
    [s \in Shards |-> SeenControl(control[s])],
    [s \in Shards |-> [n \in 1..Len(stream[s]) |->
       <<stream[s][n].event, stream[s][n].only, stream[s][n].folds>>]],
    IF Has("standing") THEN 0 ELSE [i \in Items |-> [s \in Shards |-> Ago(touched[i][s], Settling + 3)]],
    IF With("aging") THEN Min({now, KeptFor + 3}) ELSE 0,
    pruner, IF With("observing") THEN [s \in Shards |-> SeenControl(observed[s])] ELSE 0>>
=============================================================================
