------------------------------- MODULE PagesMC -------------------------------
EXTENDS Pages

(* Group 1 stays in its page, group 2 moves to page 2 when page 1 splits; group 3 follows it, and leaves it at the next level. *)
OneSplit == <<<<1, 1>>, <<1, 2>>>>
TwoSplits == <<<<1, 1, 1>>, <<1, 2, 2>>, <<1, 2, 3>>>>

OneRecord == <<<<{1, 2}>>>>
OneShard == <<<<{1, 2}, {2}>>>>
TwoShards == <<<<{1, 2}>>, <<{2}>>>>
Deep == <<<<{2, 3}, {3}>>>>

Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Cardinality({r \in DOMAIN all : all[r] = x})]

(* A version is only compared with that of a page that a splitter has read. *)
Plain(item) == IF item = None THEN None ELSE [item EXCEPT !.version = 0]
SeenAs(x) == <<x.phase, x.page, Plain(x.item), IF x.item = None THEN TRUE ELSE page[x.page].version = x.item.version>>
View == <<[p \in Pages |-> Plain(page[p])], [p \in Pages |-> {Plain(i) : i \in past[p]}], acked, Bag(process), counted, recounted,
          added, Bag([x \in Splitters |-> SeenAs(splitter[x])]), Bag(reader), had, answers>>
=============================================================================
