"""Sharded matching: subscriptions that no single worker can hold.

plan -> build -> save      `homes` decides in which shards a subscription lives
match_sharded -> match     an event goes to the shards of its keys, and to no others
increments -> advance      a changed subscription writes the shards of its homes alone
"""
