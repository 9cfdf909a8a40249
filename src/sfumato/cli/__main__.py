"""``python -m sfumato.cli``."""

from __future__ import annotations

from sfumato.cli import main

main()
