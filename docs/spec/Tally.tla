-------------------------------- MODULE Tally --------------------------------
(***************************************************************************)
(* What the sources of a group no longer show, and its way to the next     *)
(* generation.                                                             *)
(*                                                                         *)
(* A group's item holds a value and a tally: value = fold(sources) + tally *)
(* at every position of the stream.  An increment, a reset and an erasure  *)
(* whose counts are kept change the tally.  The next generation carries    *)
(* it: the item of the generation before is one of its sources, of which   *)
(* the tally counts, in the value and in the tally.                        *)
(*                                                                         *)
(* Counters.tla says that a generation folds every record of a shard once  *)
(* and in order, whatever is redelivered or crashes; here each generation  *)
(* does, at its own pace.  Backfill.tla says that the baseline is what     *)
(* source items contributed at the cut; here it is, for source items.      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,         \* Stands for what is not there.
  Keys,         \* Of source items.
  First,        \* Of each key: what its item contributes when the behavior begins.
  Shards,
  Home,         \* Of each key: the shard of its records.
  ItemHome,     \* Of each generation: the shard of its item's records.
  Generations,  \* 1 is the first.
  Carries,      \* Of each generation: the one whose tally it carries, or None.
  Weight,       \* Of each generation: by definition, an item contributes so much more or less.
  Keeps,        \* Generations that keep the counts of what is erased; the others subtract them.
  Features,     \* What takes part: a subset of AllFeatures.
  Without,      \* Guards that are removed: a subset of AllGuards.
  Directs       \* How often somebody increments or resets a group.

AllFeatures == {"changes", "erasures", "increments", "resets", "removal", "waiting", "closing"}

AllGuards == {
  "one update", "marked removals only", "tallied", "marked at the cut",
  "carried", "carried before the cut", "removed as it was", "removal logged", "after the switch", "never late",
  "compensated", "as tallied", "with the tally", "past the cut",
  "reads its predecessor", "one carry at a time", "drained"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  image,    \* Of each key: what its item contributes, and whether it is marked as erased; or None.
  stream,   \* Of each shard: its records.
  item,     \* Of each generation: its group's item, or None.
  pending,  \* The tally of an increment, if that is an update of its own.
  at,       \* Of each generation and shard: the last record it has folded.
  cut,      \* Of each generation and shard: the first record that it folds, or None.
  end,      \* Of each generation and shard: the first record that it folds no more, or None.
  scan,     \* Of each generation: what the scan has read of the item before, and how long the shards were; or None.
  based,    \* Generations that have their baseline.
  opened, reads,
  closed,   \* Whether the group's retention is over.
  gone,     \* Generations whose item was deleted.
  direct    \* What was added to groups directly, and how often.

source == <<image, closed>>
runs == <<cut, end, scan, based, opened, reads>>
vars == <<source, stream, item, pending, at, runs, gone, direct>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features
Min(S) == CHOOSE n \in S : \A m \in S : n <= m
Max(S) == CHOOSE n \in S : \A m \in S : m <= n

RECURSIVE Sum(_)
Sum(f) ==
  IF DOMAIN f = {} THEN 0
  ELSE LET x == CHOOSE x \in DOMAIN f : TRUE IN f[x] + Sum([y \in DOMAIN f \ {x} |-> f[y]])

-----------------------------------------------------------------------------
(* Items and their records.  An item of a group is told by the number of its generation, negative. *)

Item(g) == -g
C(i) == IF i = None THEN 0 ELSE i.count
T(i) == IF i = None THEN 0 ELSE i.tally
V(i) == IF i = None THEN 0 ELSE i.value

Appended(s, key, old, new, waits, only) ==
  [stream EXCEPT ![s] = Append(@, [key |-> key, old |-> old, new |-> new, waits |-> waits, only |-> only, late |-> closed])]

IsCut(g) == \A s \in Shards : cut[g][s] # None
HasEnded(g) == \A s \in Shards : end[g][s] # None

(* Whether a generation folds a record of a shard at all. *)
Belongs(g, s, n) ==
  /\ cut[g][s] # None /\ n >= cut[g][s]
  /\ end[g][s] # None => n < end[g][s]

IsErased(x) == x.new = None /\ x.old # None /\ x.key \in Keys /\ x.old.erased

(* Whether a generation counts a record as its own: what it cannot fold waits in the quarantine. *)
IsMeant(g, x) == g \notin x.waits /\ (x.only = None \/ g \in x.only)
Applies(g, s, n) == Belongs(g, s, n) /\ IsMeant(g, stream[s][n]) /\ ~stream[s][n].late

-----------------------------------------------------------------------------
(* The fold: what a record adds to the value and to the tally of a generation. *)

Nothing == [value |-> 0, tally |-> 0]
Plus(x, y) == [value |-> x.value + y.value, tally |-> x.tally + y.tally]
Both(n) == [value |-> n, tally |-> n]

TakesForErased(x) ==
  IsErased(x) \/ (~Has("marked removals only") /\ x.old # None /\ x.key \in Keys /\ x.old.erased /\ x.new # None /\ ~x.new.erased)

Own(g, x) ==
  IF TakesForErased(x) /\ g \in Keeps
  THEN [value |-> IF x.new = None THEN 0 ELSE Weight[g] * C(x.new), tally |-> IF Has("tallied") THEN Weight[g] * C(x.old) ELSE 0]
  ELSE [value |-> Weight[g] * (C(x.new) - C(x.old)), tally |-> 0]

(* An image of the item before contributes its tally.  That the item goes contributes nothing. *)
Carry(g, x) ==
  IF x.new = None /\ Has("removed as it was") THEN Nothing
  ELSE Both(T(x.new) - T(x.old))

(* Whether the generation before tallies an erasure: its tally's record brings to this one what it takes here. *)
Tallies(g, s, n) == g \in Keeps /\ Applies(g, s, n) /\ IsErased(stream[s][n])
Compensation(g, s, n) ==
  LET r == Carries[g]
      x == stream[s][n] IN
  IF r = None \/ ~Has("compensated") THEN Nothing
  ELSE IF (IF Has("with the tally") THEN Tallies(r, s, n) ELSE IsErased(x) /\ r \in Keeps /\ Belongs(r, s, n) /\ Applies(g, s, n))
  THEN Both(-(IF Has("as tallied") THEN Weight[r] ELSE Weight[g]) * C(x.old))
  ELSE Nothing

IsCarried(g, s, n) ==
  LET x == stream[s][n] IN
  /\ Carries[g] # None /\ x.key = Item(Carries[g])
  /\ Has("carried")
  /\ Has("never late") \/ ~x.late
  /\ Has("after the switch") \/ reads # g

Delta(g, s, n) ==
  LET x == stream[s][n] IN
  IF ~Belongs(g, s, n)
  THEN (IF ~Has("past the cut") /\ x.key \in Keys THEN Compensation(g, s, n) ELSE Nothing)
  ELSE IF x.key \in Keys THEN Plus(IF Applies(g, s, n) THEN Own(g, x) ELSE Nothing, Compensation(g, s, n))
  ELSE IF IsCarried(g, s, n) THEN Carry(g, x)
  ELSE Nothing

(* An item with what is added to it.  Of its records matters what they tell of the tally to those who carry it. *)
Added(i, delta) == Plus(IF i = None THEN Nothing ELSE i, delta)
IsCarriedOn(g) == \E h \in Generations : Carries[h] = g
Update(g, delta) ==
  /\ item' = [item EXCEPT ![g] = IF delta = Nothing THEN @ ELSE Added(@, delta)]
  /\ stream' = IF delta.tally = 0 \/ ~IsCarriedOn(g) THEN stream
               ELSE Appended(ItemHome[g], Item(g), item[g], Added(item[g], delta), {}, None)

Fold(g, s) ==
  LET n == at[g][s] + 1 IN
  /\ cut[g][s] # None \/ (~Has("past the cut") /\ g \in opened)
  /\ n <= Len(stream[s]) /\ (end[g][s] # None => n < end[g][s])
  /\ Update(g, Delta(g, s, n))
  /\ at' = [at EXCEPT ![g][s] = n]
  /\ UNCHANGED <<source, pending, runs, gone, direct>>

-----------------------------------------------------------------------------
(* Writers. *)

Puts(k, new, waits) ==
  /\ image' = [image EXCEPT ![k] = new]
  /\ stream' = Appended(Home[k], k, image[k], new, waits, None)
  /\ UNCHANGED <<closed, item, pending, at, runs, gone, direct>>

(* A newer version of an item that is marked has no mark. *)
Change(k) == With("changes") /\ image[k] # None /\ C(image[k]) = First[k] /\ Puts(k, [count |-> C(image[k]) + 1, erased |-> FALSE], {})
Delete(k) == With("changes") /\ image[k] # None /\ ~image[k].erased /\ Puts(k, None, {})

Mark(k) == With("erasures") /\ image[k] # None /\ ~image[k].erased /\ Puts(k, [image[k] EXCEPT !.erased = TRUE], {})
Erase(k, waits) ==
  /\ image[k] # None /\ image[k].erased
  /\ waits # {} => With("waiting") /\ \A g \in Generations : IsCut(g)
  /\ Puts(k, None, waits)

(* What waits is redriven, once: a new record for the generations that could not fold it. *)
Waiting(x) == x.waits # {}
Redriven(s, n) == \E m \in (n + 1)..Len(stream[s]) : stream[s][m].key = stream[s][n].key /\ stream[s][m].only # None
Redrive(s, n) ==
  LET x == stream[s][n] IN
  /\ Waiting(x) /\ ~Redriven(s, n)
  /\ \E g \in x.waits : at[g][s] >= n
  /\ stream' = Appended(s, x.key, x.old, None, {}, x.waits)
  /\ UNCHANGED <<source, item, pending, at, runs, gone, direct>>

(* The group's retention is over: records created later are late. *)
Close ==
  /\ With("closing") /\ ~closed /\ \A g \in opened : IsCut(g)
  /\ closed' = TRUE
  /\ UNCHANGED <<image, stream, item, pending, at, runs, gone, direct>>

(* An increment or a reset, of the generation that readers use, or used before: writers learn of the switch late. *)
MayWrite(g) == g = reads \/ (g = Carries[reads] /\ \A h \in opened : Carries[h] # reads)
AddDirectly(g, n) ==
  /\ MayWrite(g) /\ direct.times < Directs /\ pending = None
  /\ direct' = [times |-> direct.times + 1, sum |-> direct.sum + n]
  /\ IF Has("one update") THEN Update(g, Both(n)) /\ pending' = None
     ELSE Update(g, [value |-> n, tally |-> 0]) /\ pending' = <<g, n>>
  /\ UNCHANGED <<source, at, runs, gone>>
Increment(g) == With("increments") /\ AddDirectly(g, IF direct.times = 0 THEN 100 ELSE 1000)
Reset(g) == With("resets") /\ V(item[g]) # 0 /\ AddDirectly(g, -V(item[g]))
AddTally ==
  /\ pending # None
  /\ Update(pending[1], [value |-> 0, tally |-> pending[2]]) /\ pending' = None
  /\ UNCHANGED <<source, at, runs, gone, direct>>

(* A generation's item goes: it expires, or is dropped. *)
Remove(g) ==
  /\ With("removal") /\ item[g] # None /\ gone = {}
  /\ \E h \in opened : Carries[h] = g /\ IsCut(h)
  /\ item' = [item EXCEPT ![g] = None]
  /\ stream' = Appended(ItemHome[g], Item(g), item[g], None, {}, None)
  /\ gone' = gone \cup {g}
  /\ UNCHANGED <<source, pending, at, runs, direct>>

-----------------------------------------------------------------------------
(* Runs. *)

OnlyRuns == UNCHANGED <<source, stream, item, pending, gone, direct>>

(* A generation carries the one that readers use when it is opened. *)
Open(g) ==
  /\ g \notin opened /\ reads = Carries[g]
  /\ Has("one carry at a time") /\ Carries[Carries[g]] # None => HasEnded(Carries[Carries[g]])
  /\ opened' = opened \cup {g}
  /\ UNCHANGED <<cut, end, scan, based, reads, at>> /\ OnlyRuns

Cut(g, s) ==
  /\ g \in opened /\ cut[g][s] = None
  /\ cut' = [cut EXCEPT ![g][s] = Len(stream[s]) + 1]
  /\ at' = [at EXCEPT ![g][s] = IF Has("past the cut") THEN Len(stream[s]) ELSE @]
  /\ UNCHANGED <<end, scan, based, opened, reads>> /\ OnlyRuns

Scan(g) ==
  /\ g \in opened /\ IsCut(g) /\ scan[g] = None /\ g \notin based
  /\ scan' = [scan EXCEPT ![g] = [tally |-> T(item[Carries[g]]), ends |-> [s \in Shards |-> Len(stream[s])]]]
  /\ UNCHANGED <<cut, end, based, opened, reads, at>> /\ OnlyRuns

(* Every shard's records up to the end of the scan are logged and folded, by all generations. *)
Drained(g) ==
  \A h \in opened, s \in Shards : IsCut(h) =>
    at[h][s] >= (IF end[h][s] = None THEN scan[g].ends[s] ELSE Min({scan[g].ends[s], end[h][s] - 1}))

ImageAtCut(g, k) ==
  LET before == {n \in 1..(cut[g][Home[k]] - 1) : stream[Home[k]][n].key = k /\ stream[Home[k]][n].only = None} IN
  IF before = {} THEN [count |-> First[k], erased |-> FALSE] ELSE stream[Home[k]][Max(before)].new
(* The log has what changed from the cut on, the item's removal, too. *)
Changes(g) ==
  LET s == ItemHome[Carries[g]] IN
  {n \in cut[g][s]..Len(stream[s]) :
    stream[s][n].key = Item(Carries[g]) /\ (Has("removal logged") \/ stream[s][n].new # None)}
TallyAtCut(g) ==
  IF ~Has("carried before the cut") THEN 0
  ELSE IF Changes(g) = {} THEN scan[g].tally ELSE T(stream[ItemHome[Carries[g]]][Min(Changes(g))].old)

BaseCount(g, k) ==
  LET i == ImageAtCut(g, k) IN IF i # None /\ i.erased /\ ~Has("marked at the cut") THEN 0 ELSE Weight[g] * C(i)
Base(g) ==
  /\ scan[g] # None /\ (Has("drained") => Drained(g))
  /\ LET shown == Sum([k \in Keys |-> BaseCount(g, k)]) IN
     Update(g, [value |-> shown + TallyAtCut(g), tally |-> TallyAtCut(g)])
  /\ based' = based \cup {g} /\ scan' = [scan EXCEPT ![g] = None]
  /\ UNCHANGED <<source, pending, at, cut, end, opened, reads, gone, direct>>

Switch(g) ==
  /\ g \in based /\ g > reads
  /\ Has("reads its predecessor") => reads = Carries[g]
  /\ reads' = g
  /\ UNCHANGED <<cut, end, scan, based, opened, at>> /\ OnlyRuns

(* The generation that readers used before ends, some time after. *)
End(g, s) ==
  /\ g = Carries[reads] /\ end[g][s] = None
  /\ end' = [end EXCEPT ![g][s] = Len(stream[s]) + 1]
  /\ UNCHANGED <<cut, scan, based, opened, reads, at>> /\ OnlyRuns

-----------------------------------------------------------------------------
Init ==
  /\ image = [k \in Keys |-> [count |-> First[k], erased |-> FALSE]]
  /\ stream = [s \in Shards |-> <<>>]
  /\ item = [g \in Generations |->
       IF g = 1 THEN [value |-> Weight[1] * Sum(First), tally |-> 0] ELSE None]
  /\ pending = None
  /\ at = [g \in Generations |-> [s \in Shards |-> 0]]
  /\ cut = [g \in Generations |-> [s \in Shards |-> IF g = 1 THEN 1 ELSE None]]
  /\ end = [g \in Generations |-> [s \in Shards |-> None]]
  /\ scan = [g \in Generations |-> None]
  /\ based = {1} /\ opened = {1} /\ reads = 1
  /\ closed = FALSE /\ gone = {}
  /\ direct = [times |-> 0, sum |-> 0]

Next ==
  \/ \E k \in Keys : Change(k) \/ Delete(k) \/ Mark(k) \/ \E waits \in SUBSET opened : Erase(k, waits)
  \/ \E s \in Shards : \E n \in 1..Len(stream[s]) : Redrive(s, n)
  \/ Close \/ AddTally
  \/ \E g \in Generations :
       \/ Increment(g) \/ Reset(g) \/ Remove(g)
       \/ Open(g) \/ Scan(g) \/ Base(g) \/ Switch(g)
       \/ \E s \in Shards : Fold(g, s) \/ Cut(g, s) \/ End(g, s)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

(* What a generation has counted of an item: the image after the last record that it has applied. *)
Shown(g, k) ==
  LET s == Home[k]
      applied == {n \in 1..at[g][s] : stream[s][n].key = k /\ Applies(g, s, n)} IN
  IF applied = {} THEN C(ImageAtCut(g, k)) ELSE C(stream[s][Max(applied)].new)

(* At every position: the sources and the tally. *)
Balanced ==
  \A g \in based \ gone : V(item[g]) = T(item[g]) + Weight[g] * Sum([k \in Keys |-> Shown(g, k)])

(* What is kept of an erased item: as the generation counted it that folded the erasure itself. *)
RECURSIVE Kept(_, _, _)
Kept(g, s, n) ==
  IF g = None \/ stream[s][n].late THEN 0
  ELSE IF Belongs(g, s, n) THEN (IF g \in Keeps THEN Weight[g] * C(stream[s][n].old) ELSE 0)
  ELSE Kept(Carries[g], s, n)
AllKept(g) ==
  Sum([s \in Shards |-> Sum([n \in 1..Len(stream[s]) |->
    IF IsErased(stream[s][n]) /\ stream[s][n].only = None THEN Kept(g, s, n) ELSE 0])])

Quiescent ==
  /\ pending = None /\ based = opened
  /\ \A g \in opened, s \in Shards : at[g][s] = IF end[g][s] = None THEN Len(stream[s]) ELSE end[g][s] - 1
  /\ \A s \in Shards : \A n \in 1..Len(stream[s]) : Waiting(stream[s][n]) => Redriven(s, n)

(* Nothing is lost, nothing is carried twice. *)
Carried == Quiescent /\ reads \notin gone => T(item[reads]) = direct.sum + AllKept(reads)

TypeOK ==
  /\ \A g \in opened, s \in Shards : at[g][s] \in 0..Len(stream[s])
  /\ reads \in opened /\ based \subseteq opened
=============================================================================
