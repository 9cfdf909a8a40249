"""Reading a file in batches leaves nothing behind that keeps the program from ending."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

READ = """
import codecs, sys, time
from sfumato.core.errors import TableError
from sfumato.tables import source

class Slow(codecs.IncrementalDecoder):
    def decode(self, data, final=False):
        time.sleep(0.1)
        return ""

source.codecs.getincrementaldecoder = lambda encoding: Slow
file = source.open_source(sys.argv[1])
try:
    for batch in file.batches(file.schema.names, 100):
        pass
except TableError:
    print("refused")
"""


def test_a_program_ends_though_arrow_still_reads_what_was_refused(tmp_path: Path) -> None:
    path = tmp_path / "one-line.csv"
    path.write_bytes(b"a,b\n" + b"a" * (40 << 20))
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")
