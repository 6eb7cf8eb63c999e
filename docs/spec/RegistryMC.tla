----------------------------- MODULE RegistryMC -----------------------------
(* What TLC explores: small constants, and a view that makes the state space finite although time goes on. *)
EXTENDS Registry

(* The first definition adds an item's image, the second counts by ten those that pass its filter. *)
Two == <<<<0, 1, 2>>, <<0, 0, 10>>>>

OneChange == <<<<1, 2>>>>
Changed == <<<<0, 1, 2>>>>

(* Of each version: which definition of each name its code declares. *)
Only(name, definition) == [n \in Names |-> IF n = name THEN definition ELSE None]
OneVersion == <<Only("a", 1)>>
OtherDefinition == <<Only("a", 1), Only("a", 2)>>
AddedName == <<Only("a", 1), [n \in Names |-> IF n = "a" THEN 2 ELSE 1]>>
OtherName == <<Only("b", 1), Only("a", 2)>>

ReadAll == [v \in Versions |-> {1, 2}]
OlderReadsLess == <<{1}, {1, 2}>>

-----------------------------------------------------------------------------
(* Only how long ago something was matters, and that only so far. *)

Ago(time, most) == IF time - now < -most THEN -most ELSE time - now

(* S matters in which records count, and once it is past, in nothing else. *)
SeenSince(since) ==
  IF since = None THEN None
  ELSE <<IF since > now THEN since - now ELSE 0, {n \in 1..Len(stream) : IsPast(n, since)}>>

SeenEntry(e) ==
  IF e = None THEN None
  ELSE <<e.definition, e.state, e.dropped, e.fresh, SeenSince(e.since),
         IF e.state \in {"waiting", "stale"} /\ ~e.fresh THEN Ago(e.at, Fresh + Timeout + 1) ELSE 0>>

IsKept(x) == now <= x.until + Fresh \/ {"fresh registry", "deleted in time", "stale as read"} \cap Without # {}

(* Of a copy, which other things are of the same entry. *)
SeenCopy(name, e) ==
  <<SeenEntry(e), IF e = None \/ item[name].base = None THEN FALSE ELSE item[name].base = e.since,
    {r \in Runners : runner[r].name = name /\ runner[r].entry = e}>>

(* Copies that say that nothing is counted are alike: the last one counts. *)
IsNothing(e) == IF e = None THEN TRUE ELSE e.fresh
SeenPast(name) ==
  LET kept == {x \in past[name] : IsKept(x)}
      nothing == {x.until : x \in {y \in kept : IsNothing(y.entry)}} IN
  <<{<<SeenCopy(name, x.entry), Ago(x.until, Fresh + 1)>> : x \in {y \in kept : ~IsNothing(y.entry)}},
    IF nothing = {} \/ IsNothing(registry[name]) THEN 0 ELSE <<Ago(Max(nothing), Fresh + 1)>>>>

SeenItem(name) == <<item[name].value, item[name].mark, item[name].base = None, item[name].parts>>

SeenProcess(p) ==
  LET r == process[p] IN IF Running(p) THEN <<r.from, r.last, r.plan, r.left, now - r.began>> ELSE <<>>

(* A runner whose entry is no more can do nothing more. *)
SeenRunner(r) ==
  LET x == runner[r] IN
  IF x.phase = "away" THEN <<>>
  ELSE IF Without = {} /\ x.entry \notin Copies(x.name) THEN <<>>
  ELSE <<x.phase, x.name, SeenEntry(x.entry), x.held, x.ended>>

Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Cardinality({r \in DOMAIN all : all[r] = x})]

View ==
  <<[n \in 1..Len(stream) |-> <<stream[n].key, stream[n].new>>], acked, founded, first,
    [name \in Names |-> <<SeenCopy(name, registry[name]), SeenPast(name), SeenItem(name), log[name]>>],
    Bag([p \in Processes |-> SeenProcess(p)]), [r \in Runners |-> SeenRunner(r)]>>
=============================================================================
