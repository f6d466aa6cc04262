"""Encoding: expressions and events become integers, which is all that an index reads.

    schema, kinds            types of attributes, declared or learned
    leaves, resolve          a tree as rows of predicates; rows get attribute ids, types and keys
    keys, dictionary         values to int64 keys that keep the order of the values
    predicates, expressions  tables: each distinct predicate once, each expression in a slot
    derived, computed        attributes that no event names: supplied for a test, or computed
    events, event_batch      events as entries of attribute and key

`texts` reads usual texts of expressions many at a time; `json`, `dicts` and `arrow` read events as
they come.
"""
