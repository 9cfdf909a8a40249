"""Small documents: the one place where JSON and TOML are read, typed and written.

Whatever lies in a folder that somebody sent is hostile until it is parsed. Size, depth, numbers, entries and their
types are bounded here; what a document means is its reader's business.
"""

from __future__ import annotations

from sfumato.core.documents import parsing, shapes, writing
from sfumato.core.documents.parsing import *  # noqa: F403
from sfumato.core.documents.shapes import *  # noqa: F403
from sfumato.core.documents.writing import *  # noqa: F403

__all__ = []
__all__ += parsing.__all__
__all__ += shapes.__all__
__all__ += writing.__all__
