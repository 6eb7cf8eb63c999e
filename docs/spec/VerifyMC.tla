------------------------------- MODULE VerifyMC -------------------------------
EXTENDS Verify

TwoRecords == <<1, 10>>
ThreeRecords == <<1, 10, 100>>

Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Cardinality({r \in DOMAIN all : all[r] = x})]
View == <<written, acked, checkpoint, settled, Bag(process), item, log, spoiled, Bag(verifier), found>>
=============================================================================
