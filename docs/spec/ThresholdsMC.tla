----------------------------- MODULE ThresholdsMC -----------------------------
EXTENDS Thresholds, TLC

Both == {Up, Down}
Plan(folds, levels) ==
  [folds |-> folds, levels |-> levels, directions |-> Both, burst |-> "all", once |-> FALSE]

Plain == <<Plan({1}, {1, 3})>>
Highest == <<[Plan({1}, {1, 3}) EXCEPT !.burst = "highest"]>>
OnlyOnce == <<[Plan({1}, {1}) EXCEPT !.once = TRUE]>>
NewLevels == <<Plan({1}, {1}), [Plan({1}, {3}) EXCEPT !.directions = {Up}]>>
Redefined == <<Plan({1}, {2}), Plan({1, 2}, {2}), Plan({2}, {2})>>
RedefinedOnce == [e \in 1..3 |-> [Redefined[e] EXCEPT !.once = TRUE]]

(* The first crosses two lines, the second crosses them back, the third crosses one; those that are folded together, fewer. *)
UpAndDown == <<4, -4, 2>>
Again == <<2, -2, 2>>
TwoRecords == <<2, -2>>
OneEach == <<1, 1>>
InFirst == <<1, 1, 1>>
TwoEras == <<1, 1, 2>>
InTurn == <<1, 2>>

OneHome == <<1>>
Apart == <<1, 2>>

Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Cardinality({r \in DOMAIN all : all[r] = x})]
View == <<group, acked, checkpoint, Bag(process), outbox, overwritten, notices>>
=============================================================================
