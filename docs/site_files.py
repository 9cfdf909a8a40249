"""The page of commands, and files of the examples, put into the site when it is built; MkDocs calls `on_files`."""

from __future__ import annotations

import runpy
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parents[1] / "examples"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of commands, the maker of the messy file beside its tutorial, and the notebooks."""
    commands = runpy.run_path(str(Path(__file__).with_name("list_commands.py")))["write_page"]
    files.append(File.generated(config, "commands.md", content=commands()))
    files.append(File.generated(config, "learn/messy_patients.py", abs_src_path=str(EXAMPLES / "messy_patients.py")))
    for notebook in sorted((EXAMPLES / "notebooks").glob("*.py")):
        files.append(File.generated(config, f"notebooks/{notebook.name}", abs_src_path=str(notebook)))
    return files
