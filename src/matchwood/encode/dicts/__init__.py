"""Python dicts to keys: a plan for each shape of event, read by compiled code."""
