"""Texts of subscriptions to leaf rows without a tree, where they have the usual form.

`quick` reads one text by a pattern, `bulk` many by compiled code; both leave others to the parser.
"""
