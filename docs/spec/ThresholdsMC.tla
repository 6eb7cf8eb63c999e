----------------------------- MODULE ThresholdsMC -----------------------------
EXTENDS Thresholds, TLC

Plan(levels) == [levels |-> levels, directions |-> {Up, Down}, burst |-> "all", once |-> FALSE]

Plain == <<Plan({1, 3})>>
Highest == <<[Plan({1, 3}) EXCEPT !.burst = "highest"]>>
OnlyOnce == <<[Plan({1}) EXCEPT !.once = TRUE]>>
Later == <<Plan({1}), [Plan({3}) EXCEPT !.directions = {Up}]>>

(* The first crosses two lines, the second crosses them back, the third crosses one; those that are folded together, fewer. *)
UpAndDown == <<4, -4, 2>>
Again == <<2, -2, 2>>
TwoRecords == <<2, -2>>
Rising == <<2, 2>>

Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Cardinality({r \in DOMAIN all : all[r] = x})]
View == <<group, acked, checkpoint, Bag(process), outbox, overwritten, notices>>
=============================================================================
