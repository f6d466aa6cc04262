"""Files of subscriptions, events and matches: Parquet, Arrow, CSV and JSON."""
