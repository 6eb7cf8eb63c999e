------------------------------ MODULE TallyTrace ------------------------------
(***************************************************************************)
(* Whether what became of a table is a behavior of the specification.      *)
(*                                                                         *)
(* A trace has every change of source items and of the group's items, in   *)
(* the order in which they were written: what was written by the handler   *)
(* folds records, and holds what the specification says; what somebody     *)
(* else wrote is an increment, a reset, a baseline.  Cuts and ends are     *)
(* given.  The generations of all traces are numbered together.            *)
(***************************************************************************)
EXTENDS TallyTraces

VARIABLES trace, step

Log == Traces[trace].log
Of(t) == Traces[t].first..(Traces[t].first + Len(Traces[t].cuts) - 1)
Bound(t, bounds, g, s) == IF g \in Of(t) THEN bounds[g - Traces[t].first + 1][s] ELSE None

TraceInit ==
  /\ trace \in 1..Len(Traces) /\ step = 1
  /\ image = [k \in Keys |-> None] /\ stream = [s \in Shards |-> <<>>]
  /\ item = [g \in Generations |-> None]
  /\ cut = [g \in Generations |-> [s \in Shards |-> Bound(trace, Traces[trace].cuts, g, s)]]
  /\ end = [g \in Generations |-> [s \in Shards |-> Bound(trace, Traces[trace].ends, g, s)]]
  /\ at = [g \in Generations |-> [s \in Shards |-> IF cut[g][s] = None THEN 0 ELSE cut[g][s] - 1]]
  /\ based = {Traces[trace].first} /\ opened = Of(trace) /\ reads = Traces[trace].first
  /\ scan = [g \in Generations |-> None] /\ pending = None
  /\ closed = FALSE /\ gone = {} /\ direct = [times |-> 0, sum |-> 0]

Holds(e) == V(item'[e.generation]) = e.value /\ T(item'[e.generation]) = e.tally

(* What several records add, since a batch is folded at once. *)
Total(g, s, from, to) ==
  [value |-> Sum([n \in from..to |-> Delta(g, s, n).value]), tally |-> Sum([n \in from..to |-> Delta(g, s, n).tally])]

Folds(e) ==
  LET g == e.generation
      from == at[g][e.shard] + 1 IN
  /\ from <= e.last /\ e.last <= Len(stream[e.shard]) /\ Belongs(g, e.shard, e.last)
  /\ Update(g, Total(g, e.shard, from, e.last)) /\ Holds(e)
  /\ at' = [at EXCEPT ![g][e.shard] = e.last]
  /\ UNCHANGED <<source, pending, runs, gone, direct>>

Directly(e) ==
  /\ e.generation \in {reads, Carries[reads]}
  /\ Update(e.generation, Both(e.by)) /\ Holds(e)
  /\ direct' = [direct EXCEPT !.sum = @ + e.by]
  /\ UNCHANGED <<source, pending, at, runs, gone>>

(* What the log and the scan tell is what there was at the cut. *)
Baseline(g) ==
  LET s == ItemHome[Carries[g]]
      before == {n \in 1..(cut[g][s] - 1) : stream[s][n].key = Item(Carries[g])}
      carried == IF before = {} THEN 0 ELSE T(stream[s][Max(before)].new)
      shown == Sum([k \in Keys |-> Weight[g] * C(ImageAtCut(g, k))])
  IN [value |-> shown + carried, tally |-> carried]

Bases(e) ==
  /\ e.generation \notin based
  /\ Update(e.generation, Baseline(e.generation)) /\ Holds(e)
  /\ based' = based \cup {e.generation}
  /\ UNCHANGED <<source, pending, at, cut, end, scan, opened, reads, gone, direct>>

(* A group that had nothing at the cut has no baseline. *)
Switches(e) ==
  /\ Carries[e.generation] = reads
  /\ e.generation \in based \/ Baseline(e.generation) = Nothing
  /\ reads' = e.generation /\ based' = based \cup {e.generation}
  /\ UNCHANGED <<cut, end, scan, opened, at>> /\ OnlyRuns

Goes(e) ==
  /\ e.generation # reads /\ item[e.generation] # None
  /\ item' = [item EXCEPT ![e.generation] = None]
  /\ stream' = IF IsCarriedOn(e.generation)
               THEN Appended(ItemHome[e.generation], Item(e.generation), item[e.generation], None, {}, None) ELSE stream
  /\ gone' = gone \cup {e.generation}
  /\ UNCHANGED <<source, pending, at, runs, direct>>

(* Everything is folded, and nothing is lost. *)
Last(g, s) == IF end[g][s] = None THEN Len(stream[s]) ELSE Min({Len(stream[s]), end[g][s] - 1})
Over ==
  /\ \A g \in opened, s \in Shards : Total(g, s, at[g][s] + 1, Last(g, s)) = Nothing
  /\ T(item[reads]) = direct.sum + AllKept(reads)
  /\ UNCHANGED vars

Does(e) ==
  CASE e.op = "put" -> Puts(e.key, e.new, {})
    [] e.op = "fold" -> Folds(e)
    [] e.op = "direct" -> Directly(e)
    [] e.op = "base" -> Bases(e)
    [] e.op = "switch" -> Switches(e)
    [] e.op = "gone" -> Goes(e)
    [] e.op = "over" -> Over

TraceNext ==
  \/ step <= Len(Log) /\ Does(Log[step]) /\ step' = step + 1 /\ UNCHANGED trace
  \/ step > Len(Log) /\ UNCHANGED <<vars, trace, step>>

(* A position has one state. *)
Position == <<trace, step>>
=============================================================================
