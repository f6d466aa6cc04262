"""Durable matchers: a folder with a log, and segment files derived from it.

    FOLDER/log.sqlite         every acknowledged change (`log`, `group_commit`)
    FOLDER/checkpoint.json    which segment files belong together (`checkpoint`)
    FOLDER/segments/          one file a segment (`segment_files`), built from the log if damaged

`folder` is what a matcher calls; `opening` reads a folder, `replay` applies the rows of the log.
Rows that this version refuses are set aside (`refused`, `repair`).
"""
