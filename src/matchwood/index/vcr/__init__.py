"""VCR index: rectangles cut into standard pieces, every piece with a list of its subscriptions.

Idea.    Two attributes span a plane with a grid.  At every grid point stand virtual construct
         rectangles (VCRs), their sides powers of two.  An expression's two ranges are a rectangle;
         it is cut into VCRs and its id put into their lists.  A point is covered by the same
         pattern of VCRs everywhere: read those lists that exist.
Source.  Wu, Chen, Yu: VCR Indexing for Fast Event Matching for Highly-Overlapping Range Predicates.
         Equation 1 numbers the VCRs, Figure 2 is `simple` decomposition, Figure 4 `overlapped`;
         2.2.3 the hash, 2.3 covering set, pivot and distance table, 2.4 deletion.
Differs. - Grid lines are keys, chosen from the ends of the ranges (`vcr_plan`), so any type with an
           order will do.  A range that does not end on grid lines is expanded outward, and its ids
           are tested against the range itself.  So are ids with further predicates.
         - An id is given out once, however many of its VCRs cover the point: pieces of SD know
           where their rectangle ends, ids of OD are marked when they are seen.
         - What has no range on both attributes, or would be cut into more than `most_vcrs` pieces,
           is held by a BE-Tree inside.
         - An event whose x or y is a set of values is tested against every expression.
         - The hash has 2^k places, half of them free at least, and grows and shrinks; the paper's
           has a fixed prime number of them, and chains (`lists = "chains"`, for comparison).
         - Lists are sorted arrays and not chains: deletion searches by halving.
         - What is `auto` is decided again whenever the number of expressions has doubled.
         docs/decisions/0010-vcr-a-grid-of-keys.md gives the reasons.
Cost.    Insert and delete O(pieces).  Match O((2Lx + kx)(2Ly + ky) + ids in the lists that exist).
         Memory 4 bytes an id in a list, 21 an activated VCR, 1 an expression, 32 one that has to be
         tested; table 4 bytes a VCR, hash 24 to 48 an activated one.

Layout   (R_x, R_y grid points, B = (kx + 1)(ky + 1) VCRs at each, S slots, L lists)
         cut_x     int64[R_x]      first key of every grid point, MIN_KEY first; cut_y likewise
         shape     int64[4]        X_ATTR, Y_ATTR (-1: no two attributes), KX, KY
         distance  int64[|Cov|]    numbers of the VCRs that cover a point, from its pivot's on
         step_x    int32[|Cov|]    how far their corners are from the pivot's; step_y likewise
         edge      uint8[|Cov|]    the point is on the RIGHT or TOP side of the VCR, or INNER
         table     int32[B R_x R_y]  list of a VCR + 1, 0 for none; empty with the hash; with chains
                                   int32[places], the first list of a place + 1
         chain     int32[L]        with chains only: the next list of the same place + 1
         pairs                     the hash: number of a VCR -> its list (see pair_map_kernels)
         owner     int64[L]        number of the VCR that has a list; ~next for a free one
         count     int64[3]        HIGH, FREE, N_INEXACT
         home      uint8[S]        NOT_HELD, PLACED or REST
         box       int64[S, 4]     first and last key on x and on y, where an item asks for BOX;
                                   empty when few would: they are tested as MORE
         lists                     items slot << 4 | BOX | MORE | RIGHT | TOP, ascending (see
                                   id_lists)
"""
