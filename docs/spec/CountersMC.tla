----------------------------- MODULE CountersMC -----------------------------
(* What TLC explores: small constants, and a view that makes the state space finite although time goes on. *)
EXTENDS Counters

CONSTANT Eras  \* The longest history.

(* An event counts in items, by deployment; some declarations of a deployment may not be able to fold it. *)
Of(event, items, folds) ==
  [event |-> event, items |-> items, folds |-> folds, only |-> None, born |-> 0]
Record(event, items) == Of(event, [d \in Deployments |-> items], [d \in Deployments |-> items])

OneEach == [i \in Items |-> i]
OneForAll == [i \in Items |-> 1]

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
Afterwards == <<<<Record("z", {1})>>>>

(* What the first deployment counts in one item, the second counts in another one of the same declaration. *)
Rekeyed(event) == Of(event, <<{1}, {2}>>, <<{1}, {2}>>)
(* The second deployment declares one aggregate more, which cannot fold the record; or the first could not. *)
FoldedLess(event) == Of(event, <<{1}, {1, 2}>>, <<{1}, {1}>>)
FoldedMore(event) == Of(event, <<{1, 2}, {1, 2}>>, <<{1}, {1, 2}>>)

OneRekeyed == <<<<Rekeyed("a")>>>>
OneElsewhere == <<<<Record("a", {})>>>>
LaterRekeyed == <<<<Rekeyed("b")>>>>
OneFoldedLess == <<<<FoldedLess("a")>>>>
LaterFoldedLess == <<<<FoldedLess("b")>>>>
OneFoldedMore == <<<<FoldedMore("a")>>>>
LaterFoldedMore == <<<<FoldedMore("b")>>>>
RekeyedApart == <<<<Rekeyed("a")>>, <<Rekeyed("b")>>>>
None2 == <<<<>>, <<Rekeyed("b")>>>>

-----------------------------------------------------------------------------
(* Only how long ago something was matters, and that only so far. *)

Ago(time, most) == IF time - now < -most THEN -most ELSE time - now

SeenControl(s, c) ==
  IF c = None THEN None
  ELSE [c EXCEPT !.at = IF With("pruning") THEN Ago(@, Settling + 3) ELSE 0,
                 !.markAt = IF With("marks") THEN Ago(@, Settling + 3) ELSE 0,
                 !.seen = IF With("silence") THEN Ago(@, Outlived + Alive + 3) ELSE 0,
                 !.lostBefore = IF @ = None THEN None ELSE {n \in 1..Len(stream[s]) : stream[s][n].born < @}]

(* Past entries of a history matter in which of the records were born since. *)
SeenHistory(h) ==
  IF h = None THEN None ELSE
  <<[k \in 1..Len(h) |-> <<h[k].deployment, Ago(h[k].from, 0)>>],
    IF h = <<>> THEN 0 ELSE
    [s \in Shards |-> [n \in 1..Len(stream[s]) |-> Max({k \in 1..Len(h) : h[k].from <= stream[s][n].born})]]>>

SeenCopy(r) ==
  IF ~With("history") \/ r.history = None \/ (Has("history fresh") /\ r.phase = "idle" /\ now > r.historyAt + Fresh)
  THEN None
  ELSE <<SeenHistory(r.history), Ago(r.historyAt, Fresh + 1)>>

SeenProcess(p) ==
  LET r == process[p]
      stale == r.phase \in {"idle", "starting"} /\ ~With("copies")
      known == IF r.known = None \/ stale THEN None
               ELSE IF With("marks") THEN SeenControl(r.of, r.known)
               ELSE SeenControl(r.of, [r.known EXCEPT !.at = now]) IN
  IF r.phase = "cold" \/ (r.phase = "idle" /\ known = None /\ SeenCopy(r) = None)
  THEN <<"cold">> ELSE
  <<r.phase, r.shard, r.last, r.end, r.deployment, r.skipped, known, SeenCopy(r),
    IF known = None \/ ~With("copies") THEN None ELSE <<r.of, Ago(r.readAt, Fresh + 1)>>,
    IF Running(p) THEN Ago(r.deadline, Landing + 1) ELSE 0,
    IF r.phase = "committing" THEN <<[i \in Items |-> Delta(r, i)], IF Has("quarantined first") THEN 0 ELSE r.begin>>
    ELSE <<r.begin>>>>

(* Processes whose clocks agree differ in nothing but what they do. *)
SeenProcesses ==
  LET seen == [p \in Processes |-> SeenProcess(p)] IN
  IF \E p, q \in Processes : Clock[p] # Clock[q] THEN seen
  ELSE [r \in {seen[p] : p \in Processes} |-> Cardinality({p \in Processes : seen[p] = r})]

(* Redrives and takeovers may go on for ever: one redrive is explored, and a history of some entries. *)
Bounded ==
  /\ \A s \in Shards :
       Len(stream[s]) <= Len(Streams[s]) + Len(Later[s]) + (IF Has("redriven once") THEN 1 ELSE 2)
  /\ Len(history) <= Eras

View ==
  <<deployed, acked, SeenProcesses, watermark, counted, recounted, witness, quarantine, SeenHistory(history),
    [s \in Shards |-> SeenControl(s, control[s])],
    [s \in Shards |-> [n \in 1..Len(stream[s]) |->
       <<stream[s][n].event, stream[s][n].only, IF With("silence") THEN Ago(stream[s][n].born, Guarantee + 3) ELSE 0>>]],
    IF Has("standing") THEN 0 ELSE [i \in Items |-> [s \in Shards |-> Ago(touched[i][s], Settling + 3)]],
    pruner>>
=============================================================================
