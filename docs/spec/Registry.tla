------------------------------ MODULE Registry ------------------------------
(***************************************************************************)
(* A name keeps its definition.                                            *)
(*                                                                         *)
(* The registry has an entry per name: its definition, and its state.      *)
(* Every process folds every registered name by its registered definition, *)
(* whatever its own code declares; a deployment only adds names.  So it    *)
(* does not matter which version is delivered a batch, or in what order.   *)
(*                                                                         *)
(* A state is left in one direction only.  A name begins as complete, if   *)
(* its table is new, and otherwise as waiting.                             *)
(*                                                                         *)
(*    complete, filling --> stale --> waiting --> filling --> complete     *)
(*                                       |                                 *)
(*                                       +--> removed, if it was dropped   *)
(*                                                                         *)
(* A name that waits since it was registered is fresh: nothing was ever    *)
(* counted under it, so it is filled, or removed, at once.                 *)
(*                                                                         *)
(* Everyone relies on an entry for Fresh after it was read.  So whoever    *)
(* takes something away waits until nobody relies on having it.            *)
(*                                                                         *)
(*    -> stale     readers say so; every process still folds the name      *)
(*    +  Fresh     no reader says complete: who cannot read it leaves it   *)
(*                 out; all do from `waiting` on                           *)
(*    -> waiting   nobody begins to fold it Fresh later                    *)
(*    +  Fresh + Timeout                                                   *)
(*                 nobody folds it: its items are deleted; then it may be  *)
(*                 filled, or removed and registered again                 *)
(*    -> filling   S is Margin later: every process that folds a record of *)
(*                 S or later knows of it                                  *)
(*    +  Margin    records count and are logged; the scan begins           *)
(*                                                                         *)
(* That an update counts what the item lacks, and nothing twice, is the    *)
(* matter of Counters.tla; that scan and log are the baseline, of          *)
(* Backfill.tla.  Here each name has one item, and the stream one shard.   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  None,       \* Stands for what is not there.
  Names,
  Versions,   \* Of the code: any process is of any version at any time.
  Declares,   \* Of each version and name: a definition, or None.
  Reads,      \* Of each version: definitions that it can read.
  Adds,       \* Of each definition: what images 0, 1, 2 ... of a source item contribute; 0 stands for no item.
  Images,     \* Of each source item: its images, the first of which is there when the behavior begins.
  NewTable,   \* Whether the stream has had all changes of the table.
  Processes,  \* Invocations of the aggregator at a time.
  Runners,    \* Commands that run at a time.
  Features,   \* What takes part: a subset of AllFeatures.
  Without,    \* Guards that are removed: a subset of AllGuards.
  Fresh,      \* Everyone relies so long on what it has read of an entry, clocks and requests under way included.
  Timeout,    \* The longest from when an invocation begins to fold until its last request lands.
  Margin      \* From the opening to S: more than Fresh.

AllFeatures == {"backfill", "drop"}

AllGuards == {
  "registered definition", "undeclared names", "fresh registry", "past the cut",
  "first registration", "one founding", "founded first", "header first",
  "stale first", "readers first", "stale as read", "stale before waiting", "stale for a while",
  "nobody begins", "nobody folds", "emptied", "opened as emptied", "removed last", "log deleted",
  "deleted in time", "added in time", "complete as read"}

ASSUME Features \subseteq AllFeatures /\ Without \subseteq AllGuards

VARIABLES
  now,
  stream,    \* Records of the source items' changes.
  acked,     \* Where the event source mapping stands.
  founded,   \* The registry's header: names were registered.
  registry,  \* Of each name: its entry, or None.
  past,      \* Of each name: entries that someone may still rely on, and until when each was there.
  first,     \* Of each name: the definition that was registered first since it was last removed.
  item,      \* Of each name.
  log,       \* Of each name: records whose items' images before them were logged.
  process,
  runner

source == <<stream, acked>>
entries == <<founded, registry, past, first>>
items == <<item, log>>
vars == <<now, source, entries, items, process, runner>>

Has(guard) == guard \notin Without
With(feature) == feature \in Features

Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

RECURSIVE Sum(_)
Sum(f) ==
  IF DOMAIN f = {} THEN 0
  ELSE LET x == CHOOSE x \in DOMAIN f : TRUE IN f[x] + Sum([y \in DOMAIN f \ {x} |-> f[y]])

-----------------------------------------------------------------------------
(* The source: items, and the records of their changes. *)

Keys == DOMAIN Images
Contribution(d, image) == Adds[d][image + 1]

ImageAt(k, position) ==
  LET changes == {n \in 1..position : stream[n].key = k} IN
  IF changes = {} THEN Images[k][1] ELSE stream[Max(changes)].new
ImageOf(k) == ImageAt(k, Len(stream))

Write(k) ==
  LET written == Cardinality({n \in 1..Len(stream) : stream[n].key = k}) IN
  /\ written + 1 < Len(Images[k])
  /\ stream' = Append(stream, [key |-> k, old |-> ImageOf(k), new |-> Images[k][written + 2], created |-> now])
  /\ UNCHANGED <<now, acked, entries, items, process, runner>>

Elapse ==
  /\ now' = now + 1
  /\ UNCHANGED <<source, entries, items, process, runner>>

(* What definition `d` comes to after the records up to a position. *)
Truth(d, position) == Sum([k \in Keys |-> Contribution(d, ImageAt(k, position))])
Delta(d, n) == Contribution(d, stream[n].new) - Contribution(d, stream[n].old)
(* A change that adds up to zero moves the watermark, too. *)
Contributes(d, n) == Contribution(d, stream[n].new) # 0 \/ Contribution(d, stream[n].old) # 0

-----------------------------------------------------------------------------
(* The registry. *)

Entry(definition, state, since) ==
  [definition |-> definition, state |-> state, since |-> since, at |-> now, dropped |-> FALSE,
   fresh |-> state = "waiting"]

(* Copies that a process, a reader or a runner may rely on.  A Query reads no two names at the same time. *)
Copies(name) ==
  {registry[name]} \cup {x.entry : x \in {y \in past[name] : now <= y.until + Fresh}}
(* Without a guard, those that it may ever have read. *)
CopiesEver(name, guard) == IF Has(guard) THEN Copies(name) ELSE {registry[name]} \cup {x.entry : x \in past[name]}
CopiesOfAll ==
  LET of == [name \in Names |-> CopiesEver(name, "fresh registry")] IN
  {copy \in [Names -> UNION {of[name] : name \in Names}] : \A name \in Names : copy[name] \in of[name]}

Put(name, entry) ==
  /\ registry' = [registry EXCEPT ![name] = entry]
  /\ past' = [past EXCEPT ![name] = @ \cup {[entry |-> registry[name], until |-> now]}]
(* No other name, and not which definition was registered first. *)
Enter(name, entry) == Put(name, entry) /\ UNCHANGED <<founded, first>>
OnlyRegistry == UNCHANGED <<now, source, items, process>>

IsState(entry, states) == IF entry = None THEN FALSE ELSE entry.state \in states
Counting == {"filling", "complete", "stale"}
Unreadable(v, entry) == IF entry = None THEN FALSE ELSE entry.definition \notin Reads[v]

(* A process that has found no header registers all that it declares, with the header, in one transaction: in a new   *)
(* table nothing was folded until then.  Without the guard "one founding", each name is put by itself, if absent.     *)
Found(v) ==
  LET isLate == founded /\ ~Has("one founding")
      added == {name \in Names : Declares[v][name] # None /\ registry[name] = None} IN
  /\ ~founded \/ isLate
  /\ founded' = TRUE
  /\ founded => added # {}
  /\ registry' = [name \in Names |->
       IF name \notin added THEN registry[name]
       ELSE IF NewTable THEN Entry(Declares[v][name], "complete", 0) ELSE Entry(Declares[v][name], "waiting", None)]
  \* Who has read the header reads the names afterwards.
  /\ past' = IF Has("header first") THEN past
             ELSE [name \in Names |-> past[name] \cup {[entry |-> registry[name], until |-> now]}]
  /\ first' = [name \in Names |-> IF name \in added THEN Declares[v][name] ELSE first[name]]
  /\ OnlyRegistry /\ UNCHANGED runner

(* Any later name is put if absent: what is there stays, also what is being dropped. *)
Register(v, name) ==
  LET d == Declares[v][name] IN
  /\ founded /\ d # None
  /\ \/ registry[name] = None
     \/ ~Has("first registration") /\ registry[name] # None /\ registry[name].definition # d
  /\ Put(name, Entry(d, "waiting", None))
  /\ first' = [first EXCEPT ![name] = IF @ = None THEN d ELSE @]
  /\ OnlyRegistry /\ UNCHANGED <<founded, runner>>

(* By a process that cannot read the definition, before it commits a batch; or by a command that begins a name anew. *)
(* The entry must be as it was read: then it does not matter how long ago.                                           *)
MayMark(entry) == With("backfill") \/ \E v \in Versions : Unreadable(v, entry)
MarkStale(name) ==
  \E read \in (IF Has("stale as read") THEN {registry[name]} ELSE CopiesEver(name, "stale as read")) :
    /\ IsState(read, {"filling", "complete"}) /\ MayMark(read)
    /\ Enter(name, [read EXCEPT !.state = "stale", !.at = now])
    /\ OnlyRegistry /\ UNCHANGED runner

(* A dropped name stays registered, so that nobody registers it again, until its items are deleted. *)
Drop(name) ==
  /\ With("drop") /\ registry[name] # None /\ ~registry[name].dropped
  /\ Enter(name, IF IsState(registry[name], {"filling", "complete"})
                 THEN [registry[name] EXCEPT !.dropped = TRUE, !.state = "stale", !.at = now]
                 ELSE [registry[name] EXCEPT !.dropped = TRUE])
  /\ OnlyRegistry /\ UNCHANGED runner

(* From now on, nobody begins to fold the name. *)
StopFolding(name) ==
  LET e == registry[name] IN
  /\ IF IsState(e, {"stale"}) THEN Has("stale for a while") => now > e.at + Fresh
     ELSE ~Has("stale before waiting") /\ IsState(e, {"filling", "complete"})
  /\ With("backfill") \/ e.dropped
  /\ Enter(name, [e EXCEPT !.state = "waiting", !.at = now, !.since = None])
  /\ OnlyRegistry /\ UNCHANGED runner

-----------------------------------------------------------------------------
(* The aggregator. *)

Idle == [phase |-> "idle", from |-> 0, last |-> 0, began |-> 0, plan |-> [name \in Names |-> None], left |-> {}]
(* After its deadline, nothing of it lands. *)
Running(p) == process[p].phase # "idle" /\ now <= process[p].began + Timeout

IsPast(n, since) == stream[n].created >= since

(* Whoever cannot read a name leaves it out once no reader says that it is complete; until then its batches fail. *)
MayLeaveOut(entry) ==
  \/ ~IsState(entry, Counting) \/ ~Has("stale first")
  \/ IsState(entry, {"stale"}) /\ (Has("readers first") => now > entry.at + Fresh)

Folds(v, name, entry) ==
  /\ IsState(entry, Counting) /\ ~Unreadable(v, entry)
  /\ Has("undeclared names") \/ Declares[v][name] # None
DefinitionOf(v, name, entry) ==
  IF Has("registered definition") \/ Declares[v][name] = None THEN entry.definition ELSE Declares[v][name]
Planned(v, name, entry, from, last) ==
  IF ~Folds(v, name, entry) THEN None
  ELSE [definition |-> DefinitionOf(v, name, entry),
        records |-> {n \in (from + 1)..last : Has("past the cut") => IsPast(n, entry.since)},
        logs |-> entry.state = "filling"]

(* The mapping delivers any records from anywhere up to where it stands, even while other invocations run. *)
Begin(p, v, from, last, copy) ==
  /\ ~Running(p)
  /\ Has("founded first") => founded
  /\ \A name \in Names : Unreadable(v, copy[name]) => MayLeaveOut(copy[name])
  /\ process' = [process EXCEPT ![p] =
       [phase |-> "folding", from |-> from, last |-> last, began |-> now,
        plan |-> [name \in Names |-> Planned(v, name, copy[name], from, last)],
        left |-> {name \in Names : IsState(copy[name], Counting) /\ Unreadable(v, copy[name])}]]
  /\ UNCHANGED <<now, source, entries, items, runner>>

Empty == [value |-> 0, mark |-> 0, base |-> None, parts |-> {}]

(* One conditional update of the name's item, from its watermark on.  What it changes is logged before. *)
Commit(p, name) ==
  LET r == process[p].plan[name]
      delta == {n \in r.records : n > item[name].mark /\ Contributes(r.definition, n)} IN
  /\ Running(p) /\ r # None
  /\ item' = IF delta = {} THEN item ELSE [item EXCEPT ![name] =
       [@ EXCEPT !.value = @ + Sum([n \in delta |-> Delta(r.definition, n)]), !.mark = Max(delta),
                 !.parts = @ \cup {<<r.definition, n>> : n \in delta}]]
  /\ log' = IF r.logs THEN [log EXCEPT ![name] = @ \cup r.records] ELSE log
  /\ process' = [process EXCEPT ![p].plan[name] = None]
  /\ UNCHANGED <<now, source, entries, runner>>

Finish(p) ==
  /\ Running(p) /\ \A name \in Names : process[p].plan[name] = None
  /\ acked' = Max({acked, process[p].last})
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<now, stream, entries, items, runner>>

Crash(p) ==
  /\ Running(p)
  /\ process' = [process EXCEPT ![p] = Idle]
  /\ UNCHANGED <<now, source, entries, items, runner>>

-----------------------------------------------------------------------------
(* Commands: each step may be the last of its runner; another one begins where the entry says, or is there already. *)

Away == [phase |-> "away", name |-> None, entry |-> None, held |-> None, ended |-> 0]
At(r, phase) == runner[r].phase = phase
Goes(r, phase) == runner' = [runner EXCEPT ![r].phase = phase]

(* Everything that was counted, once nobody can fold the name any more.  A slower runner's deletions find later watermarks. *)
Delete(r, name) ==
  \E e \in CopiesEver(name, "deleted in time") :
    /\ At(r, "away") /\ IsState(e, {"waiting"}) /\ ~e.fresh /\ (With("backfill") \/ e.dropped)
    /\ now > e.at + (IF Has("nobody begins") THEN Fresh ELSE 0) + (IF Has("nobody folds") THEN Timeout ELSE 0)
    /\ item' = [item EXCEPT ![name] = Empty]
    /\ log' = IF Has("log deleted") THEN [log EXCEPT ![name] = {}] ELSE log
    /\ runner' = [runner EXCEPT ![r] = [Away EXCEPT !.phase = "emptied", !.name = name, !.entry = e]]
    /\ UNCHANGED <<now, source, entries, process>>

(* On condition that the entry has waited all the while. *)
IsEmptied(r, name, guard) ==
  IF registry[name].fresh \/ ~Has(guard) THEN At(r, "away")
  ELSE /\ At(r, "emptied") /\ runner[r].name = name
       /\ Has("opened as emptied") => registry[name] = runner[r].entry

Open(r, name) ==
  /\ With("backfill") /\ IsState(registry[name], {"waiting"}) /\ ~registry[name].dropped
  /\ IsEmptied(r, name, "emptied")
  /\ Enter(name, [registry[name] EXCEPT !.state = "filling", !.at = now, !.since = now + Margin, !.fresh = FALSE])
  /\ runner' = [runner EXCEPT ![r] = Away]
  /\ OnlyRegistry

Remove(r, name) ==
  /\ IsState(registry[name], {"waiting"}) /\ registry[name].dropped
  /\ IsEmptied(r, name, "removed last")
  /\ Put(name, None)
  /\ first' = [first EXCEPT ![name] = None]
  /\ runner' = [runner EXCEPT ![r] = Away]
  /\ OnlyRegistry /\ UNCHANGED founded

Scan(r, name) ==
  \E e \in Copies(name) :
    /\ With("backfill") /\ At(r, "away") /\ IsState(e, {"filling"}) /\ now >= e.since
    /\ runner' = [runner EXCEPT ![r] =
         [phase |-> "scanned", name |-> name, entry |-> e, held |-> [k \in Keys |-> ImageOf(k)], ended |-> Len(stream)]]
    /\ UNCHANGED <<now, source, entries, items, process>>

(* What an item contributed at the cut: the image before its first logged change, or what the scan has read. *)
AtCut(r, k) ==
  LET changes == {n \in log[runner[r].name] : stream[n].key = k} IN
  IF changes = {} THEN runner[r].held[k] ELSE stream[Min(changes)].old

(* Once the log has all changes up to the scan's end, the baseline is added, if it was not; to the items of this run. *)
Add(r) ==
  LET name == runner[r].name
      e == runner[r].entry
      amount == Sum([k \in Keys |-> Contribution(e.definition, AtCut(r, k))]) IN
  /\ At(r, "scanned") /\ acked >= runner[r].ended
  /\ Has("added in time") => e \in Copies(name)
  /\ item' = IF item[name].base # None THEN item
             ELSE [item EXCEPT ![name] = [@ EXCEPT !.value = @ + amount, !.base = e.since]]
  /\ Goes(r, "added")
  /\ UNCHANGED <<now, source, entries, log, process>>

Complete(r) ==
  LET name == runner[r].name IN
  /\ At(r, "added")
  /\ IF Has("complete as read") THEN registry[name] = runner[r].entry ELSE registry[name] # None
  /\ Enter(name, [runner[r].entry EXCEPT !.state = "complete", !.at = now])
  /\ runner' = [runner EXCEPT ![r] = Away]
  /\ OnlyRegistry

Die(r) ==
  /\ ~At(r, "away")
  /\ runner' = [runner EXCEPT ![r] = Away]
  /\ UNCHANGED <<now, source, entries, items, process>>

-----------------------------------------------------------------------------
Init ==
  /\ now = 0
  /\ stream = <<>> /\ acked = 0
  /\ founded = FALSE
  /\ registry = [name \in Names |-> None]
  /\ past = [name \in Names |-> {}]
  /\ first = [name \in Names |-> None]
  /\ item = [name \in Names |-> Empty]
  /\ log = [name \in Names |-> {}]
  /\ process = [p \in Processes |-> Idle]
  /\ runner = [r \in Runners |-> Away]

Next ==
  \/ Elapse
  \/ \E k \in Keys : Write(k)
  \/ \E v \in Versions : Found(v) \/ \E name \in Names : Register(v, name)
  \/ \E name \in Names : MarkStale(name) \/ Drop(name) \/ StopFolding(name)
  \/ \E p \in Processes :
       \/ \E v \in Versions : \E from \in 0..acked : \E last \in (from + 1)..Len(stream) : \E copy \in CopiesOfAll :
            Begin(p, v, from, last, copy)
       \/ \E name \in Names : Commit(p, name)
       \/ Finish(p) \/ Crash(p)
  \/ \E r \in Runners :
       \/ \E name \in Names : Delete(r, name) \/ Open(r, name) \/ Remove(r, name) \/ Scan(r, name)
       \/ Add(r) \/ Complete(r) \/ Die(r)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

(* How far the item has come, if nothing is wrong: what is acknowledged is counted; so is what came before the cut. *)
Position(name, entry) ==
  Max({acked, item[name].mark} \cup {n \in 1..Len(stream) : ~IsPast(n, entry.since)})

(* A read that says complete has what the registered definition comes to, whichever copy the reader relies on. *)
ReadsRight ==
  \A name \in Names : \A e \in Copies(name) :
    IsState(e, {"complete"}) => item[name].value = Truth(e.definition, Position(name, e))

(* Before a batch is committed that leaves a name out, no reader says that the name is complete. *)
StaleFirst ==
  \A p \in Processes : Running(p) =>
    \A name \in process[p].left : \A e \in Copies(name) :
      IsState(e, {"complete"}) => \A n \in (process[p].from + 1)..process[p].last : ~IsPast(n, e.since)

(* A name's item has what its own definition counts, from its own cut on, and its own baseline. *)
Unmixed ==
  \A name \in Names : LET e == registry[name] IN
    IsState(e, Counting) =>
      /\ \A x \in item[name].parts : x[1] = e.definition /\ IsPast(x[2], e.since)
      /\ item[name].base \in {None, e.since}

(* The definition that was registered first stays, until the name is removed with all its items. *)
KeepsDefinition ==
  \A name \in Names :
    /\ IF registry[name] = None THEN first[name] = None ELSE registry[name].definition = first[name]
    /\ registry[name] = None => item[name] = Empty

TypeOK ==
  /\ acked \in 0..Len(stream)
  /\ \A name \in Names :
       /\ item[name].mark \in 0..Len(stream)
       /\ registry[name] # None => registry[name].state \in {"waiting", "filling", "complete", "stale"}
       /\ IsState(registry[name], Counting) = (IF registry[name] = None THEN FALSE ELSE registry[name].since # None)
=============================================================================
