------------------------------ MODULE Counters ------------------------------
(***************************************************************************)
(* Exactly-once counting from DynamoDB Streams.                            *)
(*                                                                         *)
(* Records of a shard are delivered in order, at least once.  Every item   *)
(* holds a watermark per shard: the last record applied to it.  Every      *)
(* shard has a checkpoint: all records up to it are applied everywhere.    *)
(* A watermark at or below a settled checkpoint guards nothing and may be  *)
(* pruned.                                                                 *)
(*                                                                         *)
(* A record counts in items, each of a name.  Names that cannot fold it    *)
(* find it in quarantine; the others count it.  That every process folds   *)
(* the same names by the same definitions is the matter of Registry.tla.   *)
(*                                                                         *)
(* Sequence numbers count from 1 in each shard; 0 stands for none.         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,            \* Stands for what is not there.
  Items, Shards, Processes,
  NameOf,          \* Of each item.
  Streams,         \* Of each shard: its records.
  Parents,         \* Of each shard: its parent, or None.
  Features,        \* What takes part: a subset of AllFeatures.
  Without,         \* Guards that are removed: a subset of AllGuards.
  Timeout,         \* The longest that an invocation runs.
  Landing,         \* The longest that a request is under way.
  Fresh,           \* A process relies so long on what it has read of a checkpoint.
  Settling,        \* A checkpoint has settled so long after its stamp.
  MaxAge,          \* Records are counted up to this age: all are created at time 0.
  KeptFor,            \* A watermark whose record is older may be pruned, whatever the checkpoint says.
  Clock            \* Of each process: how far its clock is ahead.

AllFeatures == {"checkpoints", "copies", "aging", "observing", "windows", "pruning", "quarantine", "parts"}

AllGuards == {
  "condition", "first", "last", "refold", "from watermark", "all written", "per shard",
  "read", "all committed", "forward", "deadline", "standing", "settled", "pruned as seen", "young",
  "part by part", "quarantined first", "redriven once", "only those waiting"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  now,
  stream,       \* Of each shard: its records, those of redrives among them.
  acked,        \* Of each shard: where the event source mapping stands.
  process,      \* Execution environments, each with at most one invocation.
  watermark,    \* Of each item and shard.
  touched,      \* When each watermark was written (only for the guard "standing").
  counted,      \* <<item, event>>: applied at least once.
  recounted,    \* <<item, event>>: applied again.
  control,      \* Of each shard: its checkpoint.
  quarantine,   \* Entries, each of one record.
  pruner,       \* A request to prune that is under way, or None.
  observed      \* Of each shard: a checkpoint that a pruner has read.

table == <<watermark, touched, counted, recounted>>
books == <<control, quarantine>>
vars == <<now, stream, acked, process, watermark, touched, counted, recounted, books, pruner, observed>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features

Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

-----------------------------------------------------------------------------
(* The attribute that holds the watermark of a shard. *)
Attribute(s) == IF Has("per shard") THEN s ELSE Min(Shards)

(***************************************************************************)
(* The checkpoint of a shard.                                              *)
(***************************************************************************)

NoCheckpoint == [checkpoint |-> 0, at |-> 0]

Ripe(stamp, time) == time > stamp + Settling

(* What has settled: a checkpoint whose time is over. *)
SettledThrough(c, time) == IF Ripe(c.at, time) THEN c.checkpoint ELSE 0

Moved(through, stamp) == [checkpoint |-> through, at |-> stamp]

MoveHolds(c, through) == Has("forward") => c.checkpoint < through

(* The last record that a pruner may take for settled. *)
Prunable(c, time) == IF Has("settled") THEN SettledThrough(c, time) ELSE c.checkpoint

-----------------------------------------------------------------------------
(***************************************************************************)
(* The items in which a record `x` counts, and the names that cannot fold it. *)
(***************************************************************************)

(* A redriven record counts only in the names that it waited for; `only` is None for all of them. *)
Meant(x, only) == {i \in x.items : only = None \/ NameOf[i] \in only}
CannotFold(x, only) == {NameOf[i] : i \in Meant(x, only) \ x.folds}
CountsIn(x, only) ==
  IF only = None /\ x.folds = x.items THEN x.items
  ELSE LET cannot == CannotFold(x, only) IN {i \in Meant(x, only) : NameOf[i] \notin cannot}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Invocations.                                                            *)
(***************************************************************************)

Cold == [phase |-> "cold", shard |-> None, begin |-> 0, last |-> 0, end |-> 0, deadline |-> 0,
         after |-> [i \in Items |-> 0], known |-> None, of |-> None, readAt |-> 0]

Running(p) == process[p].phase \notin {"cold", "idle"}

(* What remains of a process between invocations. *)
Rested(r) == [Cold EXCEPT !.phase = "idle", !.known = r.known, !.of = r.of, !.readAt = r.readAt]

Sends(p) == Running(p) /\ now <= process[p].deadline
Lands(p) == Running(p) /\ now <= process[p].deadline + Landing

TimeAt(p) == now + Clock[p]
(* The stamp of what an invocation writes: its deadline, by which the write has landed. *)
Stamp(p) == (IF Has("deadline") THEN process[p].deadline ELSE process[p].deadline - Timeout) + Clock[p]

Only(x) == IF Has("only those waiting") THEN x.only ELSE None

(* Records that an item still lacks, as far as the invocation knows. *)
ImageLines(r, i, after) ==
  {n \in (after + 1)..r.last : i \in CountsIn(stream[r.shard][n], Only(stream[r.shard][n]))}
Delta(r, i) == ImageLines(r, i, r.after[i])
Lacking(r) == {i \in Items : Delta(r, i) # {}}

(* The update of an item: accepted, unless its watermark says that some of the delta is applied. *)
Accepts(mark, delta) ==
  \/ ~Has("condition")
  \/ mark < (IF Has("first") THEN Min(delta) ELSE Max(delta))

(* The effect of an update with the records `delta` on the table. *)
UpdateLands(i, s, delta) ==
  LET a == Attribute(s) IN
  IF Accepts(watermark[i][a], delta)
  THEN LET events == {<<i, stream[s][n].event>> : n \in delta}
       IN /\ watermark' = [watermark EXCEPT ![i][a] = IF Has("last") THEN Max(delta) ELSE Min(delta)]
          /\ touched' = IF Has("standing") THEN touched ELSE [touched EXCEPT ![i][a] = now]
          /\ counted' = counted \cup events
          /\ recounted' = recounted \cup (events \cap counted)
  ELSE UNCHANGED table

(* The invocation after it has heard what became of the update of item `i`, which met the watermark `mark`. *)
Answered(r, i, delta, mark) ==
  LET through == IF Accepts(mark, delta) \/ mark >= Max(delta) \/ ~Has("refold") THEN r.last ELSE mark
  IN [r EXCEPT !.after[i] = IF through > @ THEN through ELSE @]

(* The phase in which an invocation folds, and the one before: it knows that it folds what comes after `begin`. *)
Folding == IF With("quarantine") THEN "setting aside" ELSE "committing"
Prepared(r, begin) == IF With("parts") /\ begin < r.end THEN "dividing" ELSE Folding

(* The invocation once it knows the checkpoint `c`, read at `time`. *)
Informed(r, c, time) ==
  LET known == [r EXCEPT !.known = c, !.of = r.shard, !.readAt = time]
      from == IF Has("read") /\ c.checkpoint > r.begin THEN c.checkpoint ELSE r.begin
  IN [known EXCEPT !.after = [i \in Items |-> from], !.begin = from, !.phase = Prepared(r, from)]

-----------------------------------------------------------------------------
(* Nothing is counted, and nothing runs. *)
Empty ==
  /\ now = 0
  /\ acked = [s \in Shards |-> 0]
  /\ process = [p \in Processes |-> Cold]
  /\ watermark = [i \in Items |-> [s \in Shards |-> 0]]
  /\ touched = [i \in Items |-> [s \in Shards |-> 0]]
  /\ counted = {} /\ recounted = {}
  /\ control = [s \in Shards |-> NoCheckpoint]
  /\ quarantine = {}
  /\ pruner = None
  /\ observed = [s \in Shards |-> NoCheckpoint]

Init == stream = Streams /\ Empty

(* Time passes.  Invocations past their deadline are killed; what they sent lands a little later. *)
Elapse(time) ==
  /\ now' = time
  /\ process' = [p \in Processes |->
       IF Running(p) /\ time > process[p].deadline + Landing THEN Cold ELSE process[p]]
  /\ UNCHANGED <<stream, acked, table, books, pruner, observed>>

(* The mapping delivers the records after `begin`, up to `last`: new ones, a retry, a part of a batch, or a replay,   *)
(* even while another invocation runs on.  No records (begin = last) is the end of a tumbling window, which knows     *)
(* how far the window's invocations came.  `memory` is what the process knows.                                       *)
Deliver(p, s, begin, last, memory, deadline) ==
  /\ ~Running(p)
  /\ begin <= acked[s] /\ begin <= last /\ last <= Len(stream[s])
  /\ begin = last => (With("windows") /\ begin > 0)
  /\ Parents[s] # None => acked[Parents[s]] = Len(stream[Parents[s]])
  /\ With("aging") /\ Has("young") => TimeAt(p) <= MaxAge
  /\ LET r == [memory EXCEPT !.shard = s, !.begin = begin, !.last = last, !.end = last,
                             !.deadline = deadline,
                             !.after = [i \in Items |-> begin]]
     IN process' = [process EXCEPT ![p] =
          [r EXCEPT !.phase = IF With("checkpoints") THEN "starting" ELSE Prepared(r, begin)]]
  /\ UNCHANGED <<now, stream, acked, table, books, pruner, observed>>

(* What a process remembers: nothing, if it is a new one. *)
Memory(p) == IF process[p].phase = "idle" THEN process[p] ELSE Cold

-----------------------------------------------------------------------------
(* Checkpoint: read, moved. *)

Unchanged == UNCHANGED <<now, stream, acked, pruner, observed>>

(* The process has a copy that is fresh enough, or nothing to fold. *)
UseCopy(p) ==
  LET r == process[p] IN
  /\ Sends(p) /\ r.phase = "starting"
  /\ With("copies") /\ r.known # None /\ r.of = r.shard /\ (now <= r.readAt + Fresh \/ r.known.checkpoint >= r.last \/ r.begin = r.last)
  /\ process' = [process EXCEPT ![p] = Informed(r, r.known, r.readAt)]
  /\ Unchanged /\ UNCHANGED <<table, books>>

ReadCheckpoint(p) ==
  LET r == process[p] IN
  /\ Sends(p) /\ r.phase = "starting"
  /\ process' = [process EXCEPT ![p] = Informed(r, control[r.shard], now)]
  /\ Unchanged /\ UNCHANGED <<table, books>>

(* After the last item, if ever: an old checkpoint is only cautious. *)
MayMove(r) ==
  /\ With("checkpoints") /\ r.of = r.shard
  /\ Has("all committed") => Lacking(r) = {}
  /\ r.last > r.known.checkpoint \/ (~Has("forward") /\ r.last # r.known.checkpoint)

MoveCheckpoint(p) ==
  LET r == process[p] IN
  /\ Lands(p) /\ r.phase = "committing" /\ MayMove(r) /\ MoveHolds(control[r.shard], r.last)
  /\ control' = [control EXCEPT ![r.shard] = Moved(r.last, Stamp(p))]
  /\ process' = [process EXCEPT ![p].known = Moved(r.last, Stamp(p))]
  /\ Unchanged /\ UNCHANGED <<table, quarantine>>

-----------------------------------------------------------------------------
(* A batch is folded part by part: so much at a time, and apart what different names count. *)
BeginPart(p, last) ==
  LET r == process[p]
      from == IF r.phase = "dividing" THEN r.begin ELSE r.last IN
  /\ With("parts") /\ Sends(p) /\ r.phase \in {"dividing", "committing"}
  /\ r.phase = "committing" /\ Has("part by part") => Lacking(r) = {}
  /\ from < last /\ last <= r.end
  /\ process' = [process EXCEPT ![p] =
       [r EXCEPT !.phase = Folding, !.begin = from, !.last = last, !.after = [i \in Items |-> from]]]
  /\ Unchanged /\ UNCHANGED <<table, books>>

-----------------------------------------------------------------------------
(* Quarantine. *)

Entry(s, n, waiting, state) ==
  [shard |-> s, sequence |-> n, event |-> stream[s][n].event, names |-> waiting, state |-> state]
Held(s) == {e.sequence : e \in {x \in quarantine : x.shard = s}}

(* What must be in quarantine before the part is committed: records that some name cannot fold. *)
Aside(r) ==
  {Entry(r.shard, n, CannotFold(stream[r.shard][n], Only(stream[r.shard][n])), "waiting") :
     n \in {m \in (r.begin + 1)..r.last : CannotFold(stream[r.shard][m], Only(stream[r.shard][m])) # {}}}

(* An entry that is there stays as it is. *)
Put(entries) == quarantine' = quarantine \cup {e \in entries : e.sequence \notin Held(e.shard)}

Keep(p) ==
  LET r == process[p] IN
  /\ Lands(p) /\ r.phase = "setting aside"
  /\ IF Has("quarantined first") THEN Put(Aside(r)) ELSE UNCHANGED quarantine
  /\ process' = [process EXCEPT ![p].phase = "committing"]
  /\ Unchanged /\ UNCHANGED <<table, control>>

(* Without the guard "quarantined first": last of all. *)
KeepLast(p) ==
  LET r == process[p] IN
  /\ ~Has("quarantined first") /\ Lands(p) /\ r.phase = "committing" /\ Lacking(r) = {}
  /\ Put(Aside(r)) /\ quarantine' # quarantine
  /\ Unchanged /\ UNCHANGED <<process, table, control>>

(* A redrive is a change of the entry, so that its event comes back as a new record; perhaps all can fold it now. *)
Redrive(e, s, folds) ==
  /\ e \in quarantine
  /\ e.state = "waiting" \/ (e.state = "redriven" /\ ~Has("redriven once"))
  /\ \A d \in Shards : Parents[d] # s
  /\ quarantine' = (quarantine \ {e}) \cup {[e EXCEPT !.state = "redriven"]}
  /\ stream' = [stream EXCEPT ![s] = @ \o
       <<[stream[e.shard][e.sequence] EXCEPT !.only = e.names, !.folds = folds]>>]
  /\ UNCHANGED <<now, acked, process, table, control, pruner, observed>>

-----------------------------------------------------------------------------
(* Commit. *)

(* The update of one item; its answer may be lost, and the request sent again. *)
Commit(p, i, heard) ==
  LET r == process[p]
      delta == Delta(r, i)
      mark == watermark[i][Attribute(r.shard)] IN
  /\ Lands(p) /\ r.phase = "committing" /\ delta # {}
  /\ UpdateLands(i, r.shard, delta)
  /\ process' =
       \* Without the guard "from watermark", Refold goes on after a refusal.
       IF ~heard \/ ~(Has("from watermark") \/ Accepts(mark, delta))
       THEN process
       ELSE [process EXCEPT ![p] = Answered(r, i, delta, mark)]
  /\ Unchanged /\ UNCHANGED <<books>>

(* Without the guard "from watermark": after a refusal everything is written again, without the bound. *)
Refold(p, i) ==
  LET r == process[p]
      delta == Delta(r, i)
      a == Attribute(r.shard) IN
  /\ ~Has("from watermark") /\ Lands(p) /\ r.phase = "committing" /\ delta # {}
  /\ ~Accepts(watermark[i][a], delta) /\ watermark[i][a] < Max(delta)
  /\ LET events == {<<i, stream[r.shard][n].event>> : n \in delta} IN
     /\ watermark' = [watermark EXCEPT ![i][a] = Max(delta)]
     /\ counted' = counted \cup events
     /\ recounted' = recounted \cup (events \cap counted)
  /\ process' = [process EXCEPT ![p].after[i] = r.last]
  /\ Unchanged /\ UNCHANGED <<touched, books>>

(* The invocation ends well, and the mapping moves on. *)
Finish(p) ==
  LET r == process[p] IN
  /\ Sends(p) /\ r.phase = "committing"
  /\ Has("all written") => Lacking(r) = {}
  /\ r.last >= r.end
  /\ ~Has("quarantined first") => \A e \in Aside(r) : e.sequence \in Held(r.shard)
  /\ acked' = IF r.end > acked[r.shard] THEN [acked EXCEPT ![r.shard] = r.end] ELSE acked
  /\ process' = [process EXCEPT ![p] = Rested(r)]
  /\ UNCHANGED <<now, stream, table, books, pruner, observed>>

(* It fails, and the mapping will try again. *)
Fail(p) ==
  /\ Running(p)
  /\ process' = [process EXCEPT ![p] = Rested(process[p])]
  /\ UNCHANGED <<now, stream, acked, table, books, pruner, observed>>

(* The process dies, or an idle one is retired. *)
Crash(p) ==
  /\ process[p].phase # "cold"
  /\ process' = [process EXCEPT ![p] = Cold]
  /\ UNCHANGED <<now, stream, acked, table, books, pruner, observed>>

-----------------------------------------------------------------------------
(* Pruning: any process, any time; the item first, then the checkpoint, then the removal. *)

(* Some process has the fastest clock. *)
Ahead == Max({Clock[p] : p \in Processes})

(* What has settled stays settled: as long as only what was seen is removed, it does not matter when. *)
InTwoSteps == ~Has("pruned as seen")

MayPrune(i, s, value) ==
  /\ value # 0
  /\ \/ value <= Prunable(control[s], now + Ahead) \/ value <= Prunable(observed[s], now + Ahead)
     \/ With("aging") /\ now + Ahead > KeptFor
     \/ ~Has("standing") /\ value <= control[s].checkpoint /\ Ripe(touched[i][s], now)

(* A checkpoint that moves on has settled all the same, once its time is over. *)
Observe(s) ==
  /\ With("observing")
  /\ observed' = [observed EXCEPT ![s] = control[s]]
  /\ UNCHANGED <<now, stream, acked, process, table, books, pruner>>

SeeStale(i, s) ==
  /\ With("pruning") /\ InTwoSteps /\ pruner = None
  /\ MayPrune(i, s, watermark[i][s])
  /\ pruner' = [item |-> i, shard |-> s, value |-> watermark[i][s]]
  /\ UNCHANGED <<now, stream, acked, process, table, books, observed>>

(* Only the watermark that was seen is removed. *)
PruneLands(target) ==
  watermark' =
    IF Has("pruned as seen") => watermark[target.item][target.shard] = target.value
    THEN [watermark EXCEPT ![target.item][target.shard] = 0]
    ELSE watermark

PruneAtOnce(i, s) ==
  /\ With("pruning") /\ ~InTwoSteps /\ MayPrune(i, s, watermark[i][s])
  /\ PruneLands([item |-> i, shard |-> s, value |-> watermark[i][s]])
  /\ UNCHANGED <<now, stream, acked, process, touched, counted, recounted,
                 books, pruner, observed>>

Prune ==
  /\ pruner # None
  /\ PruneLands(pruner)
  /\ pruner' = None
  /\ UNCHANGED <<now, stream, acked, process, touched, counted, recounted,
                 books, observed>>

-----------------------------------------------------------------------------
Next ==
  \/ Elapse(now + 1)
  \/ Prune
  \/ \E e \in quarantine, s \in Shards :
       LET x == stream[e.shard][e.sequence] IN \E folds \in {x.folds, x.items} : Redrive(e, s, folds)
  \/ \E s \in Shards, i \in Items : SeeStale(i, s) \/ PruneAtOnce(i, s)
  \/ \E s \in Shards : Observe(s)
  \/ \E p \in Processes :
       \/ \E s \in Shards : \E begin \in 0..acked[s] : \E last \in begin..Len(stream[s]) :
            Deliver(p, s, begin, last, Memory(p), now + Timeout)
       \/ \E last \in 1..process[p].end : BeginPart(p, last)
       \/ UseCopy(p) \/ ReadCheckpoint(p)
       \/ Keep(p) \/ KeepLast(p)
       \/ \E i \in Items : Commit(p, i, TRUE) \/ Commit(p, i, FALSE) \/ Refold(p, i)
       \/ MoveCheckpoint(p) \/ Finish(p) \/ Fail(p) \/ Crash(p)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

(* Never more than once. *)
AtMostOnce == recounted = {}

Quiescent ==
  /\ \A p \in Processes : ~Running(p)
  /\ \A s \in Shards : acked[s] = Len(stream[s])

(* For record `n` of shard `s`, some names have an entry in quarantine. *)
Waits(s, n, names) == \A name \in names : \E e \in quarantine :
  e.shard = s /\ e.sequence = n /\ e.names # None /\ name \in e.names

Settles(s, n) ==
  LET x == stream[s][n] IN
  /\ \A i \in CountsIn(x, x.only) : <<i, x.event>> \in counted
  /\ Waits(s, n, CannotFold(x, x.only))

(* Whenever nothing runs and everything is acknowledged, every record counts, or waits for names that cannot fold it. *)
Exact ==
  Quiescent => \A s \in Shards : \A n \in 1..Len(stream[s]) : Settles(s, n)

(* Nothing else is counted: so nothing counts that waits. *)
Justified ==
  \A c \in counted : \E s \in Shards : \E n \in 1..Len(stream[s]) :
    LET x == stream[s][n] IN x.event = c[2] /\ c[1] \in CountsIn(x, x.only)

(* A checkpoint tells the truth: what it covers is applied, or quarantined. *)
Covered(s, through) == \A n \in 1..through : Settles(s, n)
CheckpointCovers == \A s \in Shards : Covered(s, control[s].checkpoint)

TypeOK ==
  /\ acked \in [Shards -> Nat]
  /\ \A i \in Items, s \in Shards : watermark[i][s] \in 0..Len(stream[s])
  /\ \A s \in Shards : DOMAIN control[s] = DOMAIN NoCheckpoint
  /\ \A p \in Processes : process[p].phase \in
       {"cold", "idle", "starting", "dividing", "setting aside", "committing"}
=============================================================================
