"""The toolkit that compiled code stands on.

    jit            the decorators `kernel` and `part`, prefetch
    compiler, lower, part_code   how they are compiled: fewer passes and instructions than Numba's
    cache, store   where compiled kernels are kept; those of the package, compiled ahead
    compile_times  what is compiled while a block runs; deferred: compiling outside of locks
    bound, chains  calls with one array of addresses; several kernels in one call
    objects, memory, byte_search   Python's objects, Arrow's buffers and bytes, read in kernels
    arrays         arrays that grow by doubling, tuples of them for snapshots
    owner          what owns arrays: saved, restored, thawed and counted in one way
    journal        old content of what a change writes over
    checks         what arrays from a file must be before a kernel sees them
    id_lists       many sorted lists of ids in one arena; column_lists: with columns beside them
    word_map       a hash table from words to words; pair_map: from pairs of ids to an id
    id_table       a hash table of ids whose content lies elsewhere
    sort           sorting short runs, searching sorted ones
    postings       lists of expressions that carry what verification needs
    intervals      sets of keys as sorted, disjoint intervals
    verify         does a predicate hold for the event at hand?  what every search ends in

Files that end in `_kernels` hold compiled code; they import NumPy, the decorators and each other.
"""
