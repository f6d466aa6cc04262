"""What changes take: tables, pairs and texts, read in chunks and checked row by row."""
