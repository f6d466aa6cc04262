"""One-dimensional structures: which ranges of one attribute contain a value (stabbing queries).

ps_tree              predicate spaces of the PS-Tree paper; by sorted cuts or a trie of elements
interval_tree        centred interval tree      } what the PS-Tree paper compares it with,
segment_tree         segment tree               } in its Table 3
interval_skip_list   Hanson's skip list with markers, for the AGILE paper
segments             elementary segments between the ends of predicates
predicates           all predicates of all attributes that an event satisfies, over segments
"""
