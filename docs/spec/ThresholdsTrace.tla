---------------------------- MODULE ThresholdsTrace ---------------------------
(***************************************************************************)
(* Whether what the real handler and the real notifier did about the lines *)
(* that a group crosses is a behavior of the specification.                *)
(*                                                                         *)
(* A trace has every change of the group's items, in the order in which    *)
(* they were written, and among them what became of the batches of their   *)
(* records, of each put into the outbox, and of the notifier's batches.    *)
(* Numbers are as the table has them: TallyTrace.tla says whether they are *)
(* right.  Limits are what was set or carried.  The generations and eras   *)
(* of all traces are numbered together; values and levels are doubled, so  *)
(* that shares of limits are integers.                                     *)
(***************************************************************************)
EXTENDS ThresholdsTraces

VARIABLES
  trace, step,
  based,    \* Generations whose baseline was added, or that have none.
  batch,    \* Of each process: the batch that it was delivered, and how far it has come in it; or None.
  names,    \* Of each item of the outbox: its key and its id, as numbers.
  left      \* Items of the outbox that the notifier's event source mapping has left behind.

own == <<based, batch, names, left>>

Log == Traces[trace].log
G(e) == Traces[trace].generation + e.generation

TraceInit ==
  /\ trace \in 1..Len(Traces) /\ step = 1
  /\ era = Traces[trace].era /\ reads = Traces[trace].generation
  /\ item = [g \in Generations |-> None] /\ at = [g \in Generations |-> 0]
  /\ stream = [s \in Shards |-> <<>>]
  /\ unsaid = <<>> /\ wanted = [g \in Generations |-> None] /\ sets = 0 /\ carried = 0 /\ gone = {}
  /\ acked = [s \in Shards |-> 0] /\ checkpoint = [s \in Shards |-> 0]
  /\ process = [p \in Processes |-> Idle]
  /\ outbox = <<>> /\ overwritten = {} /\ handled = 0 /\ sent = {}
  /\ based = {reads} /\ batch = [p \in Processes |-> None] /\ names = <<>> /\ left = {}

OnlyGroup == UNCHANGED <<at, unsaid, sets, carried, gone, delivery, outbox, overwritten, notices, batch, names, left>>
OnlyDelivery == UNCHANGED <<group, outbox, overwritten, notices, based, names, left>>

-----------------------------------------------------------------------------
(* The group. *)

(* The generation that reports ends once readers use the next one. *)
Advances(e) ==
  /\ Traces[trace].era + e.era >= era /\ era' = Traces[trace].era + e.era
  /\ Fires(era') <= reads
  /\ UNCHANGED <<item, reads, stream, wanted, based>> /\ OnlyGroup

(* What a generation has taken from that many records of the shard in which the one before it is. *)
Taken(g, through) ==
  LET known == {n \in 1..through : stream[Home[g]][n].generation = Carries[g] /\ stream[Home[g]][n].new # None} IN
  IF known = {} THEN None ELSE stream[Home[g]][Max(known)].new.limit

(* Until the baseline is added, a generation has taken the changes of limits alone. *)
LimitIsRight(e) ==
  LET g == G(e) IN
  /\ e.new.own = There(g).own
  /\ IF e.new.own \/ Carries[g] = None THEN e.new.limit = There(g).limit
     ELSE g \in based' => e.new.limit = Taken(g, e.carried)

Changed(e) ==
  /\ Image(item[G(e)]) = Image(e.old)
  /\ Becomes(G(e), e.new)
  /\ UNCHANGED <<era, reads>> /\ OnlyGroup

Changes(e) == Changed(e) /\ UNCHANGED <<wanted, based>> /\ LimitIsRight(e)

Bases(e) ==
  /\ G(e) \notin based /\ G(e) > reads /\ G(e) \in Eras[era].folds
  /\ based' = based \cup {G(e)}
  /\ Changed(e) /\ LimitIsRight(e) /\ UNCHANGED wanted

SetsLimit(e) ==
  /\ G(e) \in {reads, Carries[reads]}
  /\ e.new = [There(G(e)) EXCEPT !.limit = e.new.limit, !.own = TRUE]
  /\ wanted' = [wanted EXCEPT ![G(e)] = e.new.limit]
  /\ Changed(e) /\ UNCHANGED based

(* A group that had nothing at the cut has no baseline. *)
Switches(e) ==
  /\ Carries[G(e)] = reads
  /\ reads' = G(e) /\ based' = based \cup {G(e)}
  /\ UNCHANGED <<era, item, stream, wanted>> /\ OnlyGroup

-----------------------------------------------------------------------------
(* Batches.  A part of a batch is of one deployment: judged, put and committed before the next part. *)

Begins(e) ==
  /\ batch[e.process] = None
  /\ e.begin <= acked[e.shard] /\ e.begin < e.last /\ e.last <= Len(stream[e.shard])
  /\ batch' = [batch EXCEPT ![e.process] = [shard |-> e.shard, reached |-> e.begin, last |-> e.last]]
  /\ UNCHANGED delivery /\ OnlyDelivery

(* What is passed over, a checkpoint covers. *)
Covers(b, through) == through <= b.reached \/ through <= checkpoint[b.shard]

Judges(e) ==
  LET b == batch[e.process] IN
  /\ process[e.process].phase # "delivered" /\ process[e.process].todo = <<>>
  /\ b.reached <= e.begin /\ Covers(b, e.begin) /\ e.begin <= e.last /\ e.last <= b.last
  /\ process' = [process EXCEPT ![e.process] =
       [phase |-> "delivered", shard |-> b.shard, last |-> e.last, todo |-> Todo(b.shard, e.begin, e.last, None)]]
  /\ batch' = [batch EXCEPT ![e.process].reached = e.last]
  /\ UNCHANGED <<acked, checkpoint>> /\ OnlyDelivery

Commits(e) ==
  /\ process[e.process].phase # "idle"
  /\ process' = [process EXCEPT ![e.process].phase = "committed"]
  /\ UNCHANGED <<acked, checkpoint, batch>> /\ OnlyDelivery

(* By an invocation that has committed, or at the end of a window. *)
MoveSent(e) ==
  /\ process[e.process].phase # "delivered" /\ process[e.process].todo = <<>>
  /\ UNCHANGED <<delivery, batch>> /\ OnlyDelivery

MoveLanded(e) ==
  /\ checkpoint' = [checkpoint EXCEPT ![e.shard] = Max({@, e.through})]
  /\ UNCHANGED <<acked, process, batch>> /\ OnlyDelivery

Ends(e) ==
  LET b == batch[e.process] IN
  /\ e.finished =>
       process[e.process].phase # "delivered" /\ process[e.process].todo = <<>> /\ Covers(b, b.last)
  /\ acked' = IF e.finished THEN [acked EXCEPT ![b.shard] = Max({@, b.last})] ELSE acked
  /\ process' = [process EXCEPT ![e.process] = Idle] /\ batch' = [batch EXCEPT ![e.process] = None]
  /\ UNCHANGED checkpoint /\ OnlyDelivery

-----------------------------------------------------------------------------
(* Puts. *)

Reported(e) ==
  LET c == e.crossing
      g == G(c) IN
  Crossing(g, c.record, <<c.level, c.direction>>, stream[Home[g]][c.record].era)

PutSent(e) ==
  /\ process[e.process].todo # <<>> /\ e.crossing.generation # None /\ e.crossing.record # 0
  /\ Reported(e) = Head(process[e.process].todo)
  /\ UNCHANGED <<vars, own>>

(* The key and the id follow from the crossing; the table refuses what is there. *)
PutLanded(e) ==
  LET c == Reported(e)
      there == {i \in DOMAIN outbox : outbox[i].key = Key(c, e.process)} IN
  /\ e.accepted <=> there = {}
  /\ \A i \in DOMAIN names : i \in there <=> names[i] = [key |-> e.key, id |-> e.id]
  /\ PutInto(c, e.process)
  /\ names' = IF e.accepted THEN Append(names, [key |-> e.key, id |-> e.id]) ELSE names
  /\ UNCHANGED <<group, delivery, notices, based, batch, left>>

PutHeard(e) ==
  /\ process' = [process EXCEPT ![e.process].todo = Tail(@)]
  /\ UNCHANGED <<acked, checkpoint, batch>> /\ OnlyDelivery

-----------------------------------------------------------------------------
(* The notifier. *)

Place(key) == CHOOSE i \in DOMAIN names : names[i].key = key
Notifies(e) ==
  LET taken == {e.taken[i] : i \in DOMAIN e.taken}
      refused == {i \in DOMAIN e.items : \A x \in taken : x.key # e.items[i]} IN
  /\ \A i \in DOMAIN e.items : \E x \in DOMAIN names : names[x].key = e.items[i]
  /\ e.through = IF refused = {} THEN Len(e.items) ELSE Min(refused) - 1
  /\ \A x \in taken : x.id = names[Place(x.key)].id
  /\ sent' = sent \cup {<<Place(x.key), x.id>> : x \in taken}
  /\ left' = IF e.heard THEN left \cup {Place(e.items[i]) : i \in 1..e.through} ELSE left
  /\ handled' = Max({n \in 0..Len(outbox) : 1..n \subseteq left'})
  /\ UNCHANGED <<group, delivery, outbox, overwritten, based, batch, names>>

(* Everything is delivered. *)
Over == Quiescent /\ handled = Len(outbox) /\ UNCHANGED <<vars, own>>

-----------------------------------------------------------------------------
Does(e) ==
  CASE e.op = "era" -> Advances(e)
    [] e.op = "fold" -> Changes(e)
    [] e.op = "base" -> Bases(e)
    [] e.op = "limit" -> SetsLimit(e)
    [] e.op = "switch" -> Switches(e)
    [] e.op = "begin" -> Begins(e)
    [] e.op = "judged" -> Judges(e)
    [] e.op = "commit" -> Commits(e)
    [] e.op = "move sent" -> MoveSent(e)
    [] e.op = "move landed" -> MoveLanded(e)
    [] e.op = "end" -> Ends(e)
    [] e.op = "put sent" -> PutSent(e)
    [] e.op = "put landed" -> PutLanded(e)
    [] e.op = "put heard" -> PutHeard(e)
    [] e.op = "notified" -> Notifies(e)
    [] e.op = "over" -> Over

TraceNext ==
  \/ step <= Len(Log) /\ Does(Log[step]) /\ step' = step + 1 /\ UNCHANGED trace
  \/ step > Len(Log) /\ UNCHANGED <<vars, own, trace, step>>

(* Properties of the specification, each after the steps that may end it. *)
After(op) == step > 1 /\ Log[step - 1].op = op
RightPuts == After("put landed") => Silent /\ Justified /\ AtMostOnce /\ InOrder
RightMoves == After("move landed") => CheckpointCovers
RightEnds == After("end") => Exact
RightEvents == After("notified") => Delivered /\ OneId

(* A position has one state. *)
Position == <<trace, step>>
=============================================================================
