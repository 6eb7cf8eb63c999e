------------------------------ MODULE Backfill ------------------------------
(***************************************************************************)
(* Counting what a table holds already, beside the stream that goes on.    *)
(*                                                                         *)
(* A run fills a name that has no items.  From its cut on, of each shard,  *)
(* the aggregator counts records as ever.  A scan reads every item while   *)
(* writers go on; the log tells what the items that changed after the cut  *)
(* had contributed before.  Together they are the baseline: what all items *)
(* contributed at the cut.                                                 *)
(*                                                                         *)
(* That a record is never counted twice is the matter of Counters.tla; how *)
(* the name came to have no items, and that a run which is over adds       *)
(* nothing to the next one, of Registry.tla.  Here a name has one group,   *)
(* and a set of records counted in it.  An item's image is what it         *)
(* contributes; 0 stands for no item.                                      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,          \* Stands for what is not there.
  Keys,          \* Of source items: 1, 2 ..., scanned in their order.
  Images,        \* Of each key: its images, the first of which is there when the behavior begins.
  Shards,
  Home,          \* Of each key: the shard that has its records until that closes.
  Parents,       \* Of each shard: its parent, or None.
  Processes,     \* Execution environments of the aggregator.
  Runners,       \* Processes that run the same backfill.
  Features,      \* What takes part: a subset of AllFeatures.
  Without,       \* Guards that are removed: a subset of AllGuards.
  Fresh,         \* A process relies so long on what it has read of the registry.
  Clocks,        \* The largest difference of two clocks.
  Landing,       \* A run that was opened later than this is void.
  Margin,        \* From the opening to S: at least Landing + Fresh + Clocks.
  Settled,       \* From S until the shards are compared and the scan begins: at least Clocks.
  Group          \* Shard of the name's own item, or None.

AllFeatures == {"checkpoints", "beats", "quiet end", "read only", "split", "late opening", "anew"}

AllGuards == {
  "cut stored", "cut", "near", "own items", "own items since",
  "logged before checkpoint", "logged before ack", "from cut", "last in name", "first in name", "first image", "lineage",
  "same shards", "sealed", "drained", "every shard", "closed shards",
  "baseline once", "opened in time"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  now,
  image,      \* Of each key: how many of its images have been written, the first one aside.
  stream,     \* Of each shard: its records.
  closed,     \* Shards that have split.
  acked,      \* Of each shard: where the event source mapping stands.
  checkpoint, \* Of each shard.
  process,
  counted,    \* Records <<shard, n>> that the name has counted.
  base,       \* The baseline in the name's item, or None.
  cut,        \* Of each shard: the first record that the run counts, or None.
  log,        \* Pages.
  pages,      \* Of each key: what the scan has read, or None.
  run,        \* The run's item, and what the registry has of it.
  runner

source == <<image, stream, closed>>
mapping == <<acked>>
items == <<counted, base>>
books == <<checkpoint, cut, log>>
vars == <<now, source, mapping, process, items, books, pages, run, runner>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features

(* Keys of items that are not the source's: the name's own item, and a heartbeat. *)
Own == -1
Heartbeat == 0

Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

RECURSIVE Sum(_)
Sum(f) ==
  IF DOMAIN f = {} THEN 0
  ELSE LET x == CHOOSE x \in DOMAIN f : TRUE IN f[x] + Sum([y \in DOMAIN f \ {x} |-> f[y]])

-----------------------------------------------------------------------------
(* The source: items, and the records of their changes. *)

ImageOf(k) == Images[k][image[k] + 1]

IsOpen(s) == s \notin closed /\ (Parents[s] = None \/ Parents[s] \in closed)
Exists(s) == Parents[s] = None \/ Parents[s] \in closed
Existing == {s \in Shards : Exists(s)}
(* A shard closes when its only child opens. *)
ChildOf(s) == IF \E c \in Shards : Parents[c] = s THEN CHOOSE c \in Shards : Parents[c] = s ELSE None
RECURSIVE ShardNow(_)
ShardNow(s) == IF s \in closed THEN ShardNow(ChildOf(s)) ELSE s

RECURSIVE Depth(_)
Depth(s) == IF Parents[s] = None THEN 0 ELSE 1 + Depth(Parents[s])
RECURSIVE Ancestors(_)
Ancestors(s) == IF Parents[s] = None THEN {} ELSE {Parents[s]} \cup Ancestors(Parents[s])

Record(key, before, after, created) == [key |-> key, old |-> before, new |-> after, created |-> created]
Appended(s, record) == [stream EXCEPT ![s] = Append(@, record)]

(* Times of creation are approximate: they need not grow from record to record. *)
Stamps == (now - Clocks)..(now + Clocks)

Write(k, created) ==
  /\ image[k] + 1 < Len(Images[k])
  /\ image' = [image EXCEPT ![k] = @ + 1]
  /\ stream' = Appended(ShardNow(Home[k]), Record(k, ImageOf(k), Images[k][image[k] + 2], created))
  /\ UNCHANGED <<now, closed, mapping, process, items, books, pages, run, runner>>

Split(s) ==
  /\ With("split") /\ IsOpen(s) /\ ChildOf(s) # None
  /\ closed' = closed \cup {s}
  /\ UNCHANGED <<now, image, stream, mapping, process, items, books, pages, run, runner>>

Elapse ==
  /\ now' = now + 1
  /\ UNCHANGED <<source, mapping, process, items, books, pages, run, runner>>

-----------------------------------------------------------------------------
(* The name. *)

Delta(r) == stream[r[1]][r[2]].new - stream[r[1]][r[2]].old
OfSource(r) == stream[r[1]][r[2]].key # Own
Deltas(records) == Sum([r \in records |-> Delta(r)])
Counted == Deltas({r \in counted : OfSource(r)})
Value == (IF base = None THEN 0 ELSE base) + Counted

(* What an aggregate over the name's item has counted: it is filled by the same run, and begins with nothing. *)
Over == Deltas({r \in counted : ~OfSource(r)})

(* The name's item is changed; that has a record, too. *)
Changed(before, after, created) ==
  stream' = IF Group = None \/ before = after THEN stream
            ELSE Appended(Group, Record(Own, before, after, created))

-----------------------------------------------------------------------------
(* The aggregator. *)

Idle == [phase |-> "idle", shard |-> None, from |-> 0, last |-> 0, knows |-> FALSE, cut |-> 0, done |-> {}]
Running(p) == process[p].phase # "idle"
Batch(r) == (r.from + 1)..r.last

(* A process may rely on a copy: it knows nothing of a run that was opened while that was fresh. *)
MayKnow == run.openedAt # None
MayNotKnow == IF run.openedAt = None THEN TRUE ELSE now <= run.openedAt + Fresh

(* A write of the name's item is past the cut, whatever its time, but for those before the item was deleted. *)
IsOwnPast(x) == x.key = Own /\ x.new # 0 /\ (Has("own items since") => x.created >= run.since - 2 * Clocks)
IsPast(s, n) == stream[s][n].created >= run.since \/ (Has("own items") /\ IsOwnPast(stream[s][n]))
NoCut == 1000

(* Whoever folds records near S learns of the cut of their shard, or says what it is: put if absent. *)
PutCut(s, batch) ==
  LET past == {n \in batch : IsPast(s, n)} IN
  IF cut[s] = None /\ past # {} THEN Min(past) ELSE cut[s]
UsedCut(s, batch) ==
  LET past == {n \in batch : IsPast(s, n)}
      near == past # {} \/ (Has("near") /\ \E n \in batch : stream[s][n].created >= run.since - 2 * Clocks) IN
  IF ~Has("cut stored") THEN (IF past = {} THEN NoCut ELSE Min(past))
  ELSE IF ~near \/ PutCut(s, batch) = None THEN NoCut ELSE PutCut(s, batch)

(* The mapping delivers any records from anywhere up to where it stands, even while other invocations run. *)
Deliver(p, s, begin, last, knows) ==
  LET from == Max({begin, checkpoint[s]})
      batch == (from + 1)..last IN
  /\ ~Running(p)
  /\ begin <= acked[s] /\ last <= Len(stream[s]) /\ from < last
  /\ Parents[s] # None => Parents[s] \in closed /\ acked[Parents[s]] = Len(stream[Parents[s]])
  /\ IF knows THEN MayKnow ELSE MayNotKnow
  /\ cut' = IF knows THEN [cut EXCEPT ![s] = PutCut(s, batch)] ELSE cut
  /\ process' = [process EXCEPT ![p] =
       [phase |-> "begun", shard |-> s, from |-> from, last |-> last, knows |-> knows, done |-> {},
        cut |-> IF knows THEN UsedCut(s, batch) ELSE NoCut]]
  /\ UNCHANGED <<now, source, mapping, items, checkpoint, log, pages, run, runner>>

(* The records that the run counts. *)
Belongs(r, n) ==
  IF Has("cut") THEN n >= r.cut ELSE IF r.knows THEN stream[r.shard][n].created >= run.since ELSE FALSE

Told(r) == {n \in Batch(r) : IF Has("from cut") THEN Belongs(r, n) ELSE r.knows}
(* Of each item the first record in the page. *)
Rows(r) == {n \in Told(r) : stream[r.shard][n].key \in Keys /\
              \A m \in Told(r) : stream[r.shard][m].key = stream[r.shard][n].key =>
                IF Has("first image") THEN m >= n ELSE m <= n}
Page(r) == [shard |-> r.shard, first |-> Min(Told(r)), last |-> r.last, rows |-> Rows(r)]
SameName(x, y) ==
  /\ x.shard = y.shard
  /\ Has("first in name") => x.first = y.first
  /\ Has("last in name") => x.last = y.last

Log(p) ==
  LET r == process[p]
      there == {x \in log : SameName(x, Page(r))} IN
  /\ r.phase = "begun" /\ "logged" \notin r.done
  /\ Told(r) # {}
  \* A page that is named by what is in it may as well be put again.
  /\ log' = IF ~Has("first in name") THEN (log \ there) \cup {Page(r)}
            ELSE IF there # {} THEN log ELSE log \cup {Page(r)}
  /\ process' = [process EXCEPT ![p].done = @ \cup {"logged"}]
  /\ UNCHANGED <<now, source, mapping, items, checkpoint, cut, pages, run, runner>>

IsLogged(r) == "logged" \in r.done \/ Told(r) = {}

InOrder == Has("logged before checkpoint") /\ Has("logged before ack")

Fold(p, created) ==
  LET r == process[p]
      of == {<<r.shard, n>> : n \in {m \in Batch(r) : Belongs(r, m) /\ stream[r.shard][m].key # Heartbeat}}
      source_of == {x \in of \ counted : OfSource(x)} IN
  /\ r.phase = "begun" /\ "folded" \notin r.done
  /\ InOrder => IsLogged(r)
  /\ counted' = counted \cup of
  /\ IF Group = None \/ source_of = {} THEN stream' = stream /\ created = now
     ELSE Changed(Value, Value + Deltas(source_of), created)
  /\ process' = [process EXCEPT ![p].done = @ \cup {"folded"}]
  /\ UNCHANGED <<now, image, closed, mapping, base, books, pages, run, runner>>

Move(p) ==
  LET r == process[p] IN
  /\ With("checkpoints") /\ r.phase = "begun" /\ "folded" \in r.done
  /\ Has("logged before checkpoint") => IsLogged(r)
  /\ r.last > checkpoint[r.shard]
  /\ checkpoint' = [checkpoint EXCEPT ![r.shard] = r.last]
  /\ UNCHANGED <<now, source, mapping, process, items, cut, log, pages, run, runner>>

Finish(p) ==
  LET r == process[p] IN
  /\ r.phase = "begun" /\ "folded" \in r.done
  /\ Has("logged before ack") => IsLogged(r)
  /\ acked' = [acked EXCEPT ![r.shard] = Max({@, r.last})]
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<now, source, items, books, pages, run, runner>>

Crash(p) ==
  /\ Running(p)
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<now, source, mapping, items, books, pages, run, runner>>

-----------------------------------------------------------------------------
(* The run, and those who run it: each step may be the last of its runner; another one goes on, or is there already. *)

NoRun == [phase |-> "none", since |-> None, asked |-> None, openedAt |-> None, open |-> FALSE, shards |-> {},
          ended |-> None, complete |-> FALSE]
Away == [phase |-> "away", held |-> None, at |-> 1]

Ask(r) ==
  /\ run.phase = "none" /\ run.asked = None
  /\ LET asked == [run EXCEPT !.asked = now, !.since = now + Margin, !.shards = Existing] IN
     IF With("late opening")
     THEN run' = asked /\ runner' = [runner EXCEPT ![r] = [Away EXCEPT !.phase = "opening"]]
     ELSE /\ run' = [asked EXCEPT !.openedAt = now, !.phase = "waiting", !.open = TRUE]
          /\ runner' = [runner EXCEPT ![r] = [Away EXCEPT !.phase = "waiting"]]
  /\ UNCHANGED <<now, source, mapping, process, items, books, pages>>

(* The request lands, later perhaps, even if whoever sent it is dead. *)
Opens ==
  /\ run.asked # None /\ run.openedAt = None
  /\ run' = [run EXCEPT !.openedAt = now, !.phase = "opening", !.open = TRUE]
  /\ UNCHANGED <<now, source, mapping, process, items, books, pages, runner>>

(* The run's item says where the run is, whatever it said before: a slower runner sets it back. *)
Enter(r, next, ended) ==
  /\ run' = [run EXCEPT !.phase = next, !.ended = ended]
  /\ runner' = [runner EXCEPT ![r] = [Away EXCEPT !.phase = next]]

(* The name goes stale, unless it is complete. *)
Void(r) ==
  /\ runner' = [runner EXCEPT ![r] = Away]
  /\ run' = IF ~run.open THEN run ELSE [run EXCEPT !.phase = "void", !.open = FALSE]

Steps(r, phase) == runner[r].phase = phase
OnlyRun == UNCHANGED <<now, source, mapping, process, items, books, pages>>

(* Only who has heard in time that the run is open knows that every process knows of it before S. *)
Confirm(r) ==
  /\ Steps(r, "opening") /\ run.phase # "none"
  /\ IF now <= run.asked + Landing \/ ~Has("opened in time") THEN Enter(r, "waiting", None) ELSE Void(r)
  /\ OnlyRun

BeginScan(r) ==
  /\ Steps(r, "waiting") /\ now >= run.since + Settled
  /\ IF Has("same shards") /\ Existing # run.shards THEN Void(r) ELSE Enter(r, "scanning", None)
  /\ OnlyRun

(* A page of the scan: read, and some time later put. *)
Read(r) ==
  /\ Steps(r, "scanning") /\ runner[r].at <= Cardinality(Keys) /\ runner[r].held = None
  /\ runner' = [runner EXCEPT ![r].held = ImageOf(runner[r].at)]
  /\ UNCHANGED <<now, source, mapping, process, items, books, pages, run>>

Seal(r) ==
  LET k == runner[r].at IN
  /\ Steps(r, "scanning") /\ runner[r].held # None
  /\ pages' = IF pages[k] = None \/ ~Has("sealed") THEN [pages EXCEPT ![k] = runner[r].held] ELSE pages
  /\ runner' = [runner EXCEPT ![r].held = None, ![r].at = k + 1]
  /\ UNCHANGED <<now, source, mapping, process, items, books, run>>

EndScan(r) ==
  /\ Steps(r, "scanning") /\ runner[r].at > Cardinality(Keys)
  /\ Enter(r, "draining", now)
  /\ OnlyRun

(* An item of a random key is written: its record comes after all that its shard had when the scan ended. *)
Beat(r, s) ==
  /\ With("beats") /\ Steps(r, "draining") /\ IsOpen(s)
  /\ \A n \in 1..Len(stream[s]) : stream[s][n].key # Heartbeat
  /\ stream' = Appended(s, Record(Heartbeat, 0, 0, now))
  /\ UNCHANGED <<now, image, closed, mapping, process, items, books, pages, run, runner>>

HasBeat(x) == \E n \in x.first..x.last : stream[x.shard][n].key = Heartbeat
Acknowledged(s) == \E x \in log :
  /\ x.shard = s
  /\ HasBeat(x) \/ (With("quiet end") /\ stream[s][x.last].created > run.ended + Clocks)

(* Nobody may write to the source: its stream is read, from the log's end on, until its end has passed. *)
LoggedTo(s) == Max({0} \cup {x.last : x \in {y \in log : y.shard = s}})
Empty(s) == \A n \in (LoggedTo(s) + 1)..Len(stream[s]) : cut[s] = None /\ stream[s][n].created < run.since
ReadToEnd ==
  /\ now > run.ended + Clocks
  /\ \A s \in Existing : IsOpen(s) \/ Has("closed shards") => Empty(s)

Drained ==
  \/ ~Has("drained")
  \/ IF With("read only") THEN ReadToEnd
     ELSE LET done == {s \in Shards : IsOpen(s) /\ \E a \in {s} \cup Ancestors(s) : Acknowledged(a)} IN
          IF Has("every shard") THEN \A s \in Shards : IsOpen(s) => s \in done ELSE done # {}

EndDrain(r) ==
  /\ Steps(r, "draining") /\ runner[r].held = None /\ Drained
  /\ Enter(r, "adding", run.ended)
  /\ OnlyRun

(* What an item contributed at the cut: the image before its first logged change; without one, what the scan has read. *)
Before(x, y) ==
  IF Has("lineage") /\ Depth(x[1]) # Depth(y[1]) THEN Depth(x[1]) < Depth(y[1])
  ELSE x[2] < y[2] \/ (x[2] = y[2] /\ Depth(x[1]) >= Depth(y[1]))
Changes(k) == UNION {{<<x.shard, n>> : n \in {m \in x.rows : stream[x.shard][m].key = k}} : x \in log}
AtCut(k) ==
  LET all == Changes(k)
      one == CHOOSE x \in all : \A y \in all : IF Has("first image") THEN Before(x, y) \/ x = y ELSE Before(y, x) \/ x = y
  IN IF all # {} THEN stream[one[1]][one[2]].old ELSE pages[k]

SumUp(r) ==
  /\ Steps(r, "adding") /\ runner[r].held = None
  /\ runner' = [runner EXCEPT ![r].held = Sum([k \in Keys |-> AtCut(k)])]
  /\ UNCHANGED <<now, source, mapping, process, items, books, pages, run>>

Add(r, created) ==
  LET held == runner[r].held IN
  /\ Steps(r, "adding") /\ held # None
  /\ base' = IF base = None THEN held ELSE IF Has("baseline once") THEN base ELSE base + held
  /\ IF base' = base \/ Group = None THEN stream' = stream /\ created = now
     ELSE Changed(Value, Value + held, created)
  /\ runner' = [runner EXCEPT ![r] = [Away EXCEPT !.phase = "completing"]]
  /\ UNCHANGED <<now, image, closed, mapping, process, counted, books, pages, run>>

(* One write: the run is over, and readers say that the name is complete, if it is still filled. *)
Complete(r) ==
  /\ Steps(r, "completing")
  /\ IF run.open
     THEN /\ run' = [run EXCEPT !.phase = "complete", !.open = FALSE, !.complete = TRUE]
          /\ runner' = [runner EXCEPT ![r] = Away]
     ELSE Void(r)
  /\ OnlyRun

(* Another runner joins; or one that died, wherever it was, is followed by another one. *)
Resume(r) ==
  /\ run.phase \in {"opening", "waiting", "scanning", "draining", "adding"}
  /\ runner[r] # [Away EXCEPT !.phase = run.phase]
  /\ IF run.phase = "opening" /\ Has("opened in time") THEN Void(r)
     ELSE /\ runner' = [runner EXCEPT ![r] = [Away EXCEPT !.phase = run.phase]]
          /\ UNCHANGED run
  /\ OnlyRun

-----------------------------------------------------------------------------
Init ==
  /\ now = 0
  /\ image = [k \in Keys |-> 0]
  \* The name's item had been written before it was deleted, long ago.
  /\ stream = [s \in Shards |-> IF With("anew") /\ s = Group
                               THEN <<Record(Own, 0, 1, -1), Record(Own, 1, 0, 0)>> ELSE <<>>]
  /\ closed = {}
  /\ acked = [s \in Shards |-> 0]
  /\ checkpoint = [s \in Shards |-> 0]
  /\ process = [p \in Processes |-> Idle]
  /\ counted = {} /\ base = None
  /\ cut = [s \in Shards |-> None]
  /\ log = {}
  /\ pages = [k \in Keys |-> None]
  /\ run = NoRun
  /\ runner = [r \in Runners |-> Away]

Next ==
  \/ Elapse \/ Opens
  \/ \E k \in Keys, created \in Stamps : Write(k, created)
  \/ \E s \in Shards : Split(s)
  \/ \E p \in Processes :
       \/ \E s \in Shards, knows \in BOOLEAN : \E begin \in 0..acked[s] : \E last \in (begin + 1)..Len(stream[s]) :
            Deliver(p, s, begin, last, knows)
       \/ Log(p) \/ Move(p) \/ Finish(p) \/ Crash(p)
       \/ \E created \in Stamps : Fold(p, created)
  \/ \E r \in Runners :
       \/ Ask(r) \/ Confirm(r) \/ BeginScan(r) \/ Read(r) \/ Seal(r) \/ EndScan(r) \/ EndDrain(r)
       \/ SumUp(r) \/ Complete(r) \/ Resume(r)
       \/ \E s \in Shards : Beat(r, s)
       \/ \E created \in Stamps : Add(r, created)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

Whole == Sum([k \in Keys |-> ImageOf(k)])

Quiescent ==
  /\ \A p \in Processes : ~Running(p)
  /\ \A s \in Shards : acked[s] = Len(stream[s])

(* Once the name is complete, it counts what the table holds whenever everything is acknowledged. *)
Exact == run.complete /\ Quiescent => Value = Whole

(* An aggregate over it counts what it counts, at any time. *)
OverExact == Group # None /\ Quiescent => Over = Value

(* Across shards, too: of an item, all changes count from some change on. *)
Later(x, y) == Depth(y[1]) > Depth(x[1]) \/ (y[1] = x[1] /\ y[2] > x[2])
Onwards ==
  With("split") /\ run.phase \in {"scanning", "draining", "adding", "complete"} =>
    \A x \in counted : \A s \in Shards : \A n \in 1..acked[s] :
      OfSource(x) /\ stream[s][n].key = stream[x[1]][x[2]].key /\ Later(x, <<s, n>>) => <<s, n>> \in counted

TypeOK ==
  /\ base # None => base \in Int
  /\ \A s \in Shards : acked[s] \in 0..Len(stream[s]) /\ checkpoint[s] \in 0..Len(stream[s])
  /\ run.phase \in {"none", "opening", "waiting", "scanning", "draining", "adding", "complete", "void"}
  /\ \A x \in log : x.first <= x.last /\ x.last <= Len(stream[x.shard])
=============================================================================
