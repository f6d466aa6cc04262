"""What is said of matches beyond ids: the best, why, why not, near misses, relations."""
