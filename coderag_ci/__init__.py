"""Turn a git diff into an evidence pack for whoever reviews the change."""

__version__ = "0.1.0"
