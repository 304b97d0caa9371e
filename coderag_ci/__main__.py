"""``python -m coderag_ci``."""

from coderag_ci.cli import main

main()
