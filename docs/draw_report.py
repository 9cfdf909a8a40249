"""Screenshot of the report for the README and the landing page: ``python docs/draw_report.py [report.html]``.

Takes the first screen of the owner's report of the demo (``make demo``), in the installed Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from sfumato.publish.folder import find_browser

DOCS = Path(__file__).parent
PICTURE = DOCS / "report.png"
SIZE = (1060, 760)
MOST_BYTES = 150_000


def main(report: Path) -> None:
    """Write docs/report.png."""
    if not report.is_file():
        sys.exit(f"{report} does not exist: run make demo first, or name another report.")
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        shot = [f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={PICTURE}", report.resolve().as_uri()]
        subprocess.run([find_browser(), *flags, *shot], check=True, capture_output=True, timeout=120)
    if (size := PICTURE.stat().st_size) > MOST_BYTES:
        sys.exit(f"docs/report.png has {size} bytes, more than {MOST_BYTES}: make SIZE smaller.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "demo" / "owner" / "report.html")
