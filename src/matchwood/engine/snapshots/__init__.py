"""Snapshots: a matcher as a directory of arrays that many processes can map at once.

`parts` turns a store into settings and arrays and back.  `manifest`, `settings` and `part_checks`
check them before use.  `generations` keeps one complete directory while another is written.
`versions` share segments between directories; `copies` are parts in memory.
"""
