"""JSON bytes to keys: one compiled walk that follows only the paths in use.

`plan` prepares the paths, `reader` calls the walk, `events` gives odd documents to exact code.
"""
