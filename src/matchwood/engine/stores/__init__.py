"""A store: subscriptions, tables and indexes, from text and events to slots, without locks.

    store ---+-- subscriptions   ids, texts, order, columns (priority, expiry, own attributes)
             +-- routing         which index holds which expression; `finding` asks them
             +-- savepoint       what a change restores if it is interrupted; `recovery` the rest

Segments, the head and named indexes are stores.
"""
