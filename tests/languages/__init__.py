"""What the query file of each language finds."""
