"""Streams: an ordered log with output exactly once, or events beside a table of rules.

`match_stream` takes the log; `live` takes events, and one version of the rules a micro-batch.
"""
