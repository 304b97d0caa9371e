"""From the bytes of one file to its units, names and terms. Knows nothing of git or of a store."""
