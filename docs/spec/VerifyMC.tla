------------------------------- MODULE VerifyMC -------------------------------
EXTENDS Verify

OneRecord == <<1>>
TwoRecords == <<1, 10>>

Bag(all) == [x \in {all[r] : r \in DOMAIN all} |-> Cardinality({r \in DOMAIN all : all[r] = x})]
View == <<written, acked, checkpoint, settled, Bag(process), item, log, spoiled, Bag(verifier), open, found>>
=============================================================================
