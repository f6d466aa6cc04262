"""Blocks: conjunctions reached by an access predicate, verified where the list that names them is.

Idea.    Each subscription hangs on its most selective predicate and is listed in the spaces of keys
         that this meets, as in `pst_bloom`.  What the members of a space still need lies with
         them, in blocks of up to 512: a block is read from its beginning to its end, and nothing
         else is.  Where members share attributes, one row of bits answers for all of them at
         once; where they do not, two gates of each member exclude most, and the others have
         their predicates inline.

             space  x in 20..29          members   0 1 2 3 4 5 ...
             column y   absent       row 0         1 0 0 1 0 1      members without a predicate on y
                        y = ..3      row 1         1 0 1 1 0 1
                        y = 4..6     row 2         1 1 1 1 0 1      an event with y = 5 takes this
                        y = 7..      row 3         1 1 0 1 1 1
             column z   ...          row r         0 1 1 1 0 1      and ANDs it with one of z
                                                   0 1 1 1 0 1      members 1, 2, 3, 5 match

         A space of many members is divided by a second predicate: each of its blocks has a gate,
         the hull of what its members accept of one attribute.  Blocks whose gate is closed for an
         event are not read.

Source.  Spaces and access predicates: PS-Tree, sections 3.3, 4 and 5 (`index/pst`, the same code).
         Segments between the ends of predicates as codes, a bit vector for each: bitmap indexes,
         and the bit vectors of packet classification.  Nothing else: the structure is ours.
Differs. No lower and upper bounds in columns: sets (IN, <>, NOT IN) would need several of them, a
         row of bits has any set at the same cost and needs no comparison.  Its price is memory in
         proportion to the codes of an attribute; so an attribute has an exact column only if that
         takes at most `exact` times the words of the cells it replaces (in blocks where more than
         `undecided` of the cells would remain, up to four times that), a coarse one (several codes
         a row; presence alone, at the end) as a sieve, or none.
         Immutable: changes go through `StaticFrame`, which builds all blocks anew.
         It does not learn from events: access predicates are chosen by constants and by how often
         attributes are named.
         Events of a batch are searched one after the other, or many thousands of sparse ones block
         by block: first gates of members by attribute, see `groups` (decision 0026).
Cost.    Match O(attributes + gates of their spaces + columns x members / 64 of blocks reached +
         entries tested): guides lead from a key to its code and from a code to its space in a few
         steps, whatever their number, unless keys lie in few places of a wide range.
         Build O(predicates + spaces met), 2 s for a million (benchmarks/blocks.py).  Memory 4 bytes
         a record, and for a predicate 8 or more in cells or (codes + 1) / 8 / share of the members
         that have one in columns.

Layout   codes    cut points of every attribute: sorted keys, or a table of codes (`words.Codes`)
         places   spaces: first codes, and the blocks of each (`words.Places`)
         blocks   gates, the words of all blocks, large sets, equal subscriptions (`words.Blocks`)

    column block  [header][items at][columns][rows 0][has an entry][other rows][items][entries]
    row block     [header][items at][gates][items][entries]

         The gates of a member are the hulls of two of its predicates, those that events satisfy
         most seldom, in 4 bytes each.  PSTBloom's signatures, a bit for each attribute that a
         member needs, take as much and let twice as many through (1M of `pstree`: 2,659 of 18,958
         instead of 1,356); a predicate that a gate decides needs no cell.

         Equal subscriptions are one member; its item refers to the list of their slots (`twin`).
         A subscription whose access predicate meets several spaces is a member of each.

Files    words         what a word means: headers, columns, cells; codes of keys
         codes         cut points, and predicates in codes
         members       the members of every space; which subscriptions are equal
         cluster       the members of a space in blocks behind gates
         pack          which attributes become columns; the words of a block
         entries       gates and predicates of members
         reach         codes, spaces and open gates of an event
         verify        testing a block: rows of bits, gates, entries
         match, match_sets     searching, for events of values and of sets
         match_best    searching for the best by rank alone
         groups, match_groups, by_groups    searching large batches block by block
         check_layout, check   what a snapshot must be
         build, index, draw    the owner
"""
