"""Indexes: slots are inserted and deleted, and an event gives the slots that match it.

    core        protocol, registry, settings, the frames that indexes derive from
    scan, be_tree, pst, a_tree, vcr     change in place
    blocks, terms                       built in bulk, for segments
    stabbing    which predicates of one attribute a value satisfies
    baselines   what the papers compare their structures with

docs/indexes.md says which one to pick; the docstring of a structure's folder describes it.
"""
