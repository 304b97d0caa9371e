"""Says how well the pipeline finds what a reviewer would have had to look at."""
