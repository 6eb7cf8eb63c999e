"""Features on one table, under every fault: all of them at once, with backfills and verifications, or a few in a swarm.

The engine has what is there once: a clock, a table, its mapping, the deployed function, a plan of faults, and the calls
under way. Actors do the rest, one for each kind of feature: each offers what it would do now, and notes each feature
that really happened, and to which declarations. Direct changes of groups are in a ledger, heard where requests
reach the table; the content of groups follows from it and from the stream, never from the runtime's fold.
"""
