------------------------------- MODULE TallyMC -------------------------------
EXTENDS Tally

OneItem == <<1>>
TwoItems == <<1, 20>>
FirstShard == <<1>>
HomesApart == <<1, 2>>
HomesTogether == <<1, 1>>
OneShard == <<1, 1, 1>>
Apart == <<2, 2, 1>>
Pair == <<None, 1>>
Chain == <<None, 1, 2>>
Rivals == <<None, 1, 1>>
Same == <<1, 1, 1>>
Redefined == <<1, 3, 7>>

View == vars
=============================================================================
