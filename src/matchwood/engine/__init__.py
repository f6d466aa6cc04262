"""The engine: `Matcher`, its methods by subject, and what it holds.

    matcher         add, replace, remove, save, load, open
    matching        match, match_many, match_json: `matches` is what they return for many events
    questions       counts, near misses, overlaps, duplicates, verify
    collection      ids, items, copies; `batches`: several changes as one
    context_values  values of contexts
    holding, access how a method gets at the view, and how a change publishes the next one
    durability      methods of a matcher with a folder; the folder itself is in `durable`

The folders below hold what these methods call: `input`, `segments`, `stores`, `answers`,
`snapshots`, `durable` and `formats`.
"""
