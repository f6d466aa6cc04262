"""A view, its parts, and how they are searched and changed.

    view ---+-- segment (`planned`)   immutable: indexes that `planner` chose; removals are marks
            +-- segment ...           merged by `background`, in sizes that `tiers` states
            +-- head (`head`)         small changes, in two copies; `recent`: not yet encoded
            +-- context_part          subscriptions with contexts, under a lock of their own

A change is prepared in a `draft` and published by one assignment.  A search takes the view once:
`single` for one event, `asked` and `pieces` for batches, `parallel` for several threads.
"""
