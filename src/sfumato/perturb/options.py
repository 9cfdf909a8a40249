"""Options that both kinds of noise share, and what is refused of them."""

from __future__ import annotations

from sfumato.errors import OptionError
from sfumato.laws import LAWS, choose_step
from sfumato.laws.enhance import Pairs, check_enhance, check_size

__all__ = ["check_noise", "common_step"]


def check_noise(law: str, size: float, enhance: float, enhance_size: float, enhance_laws: Pairs) -> None:
    """Refuse laws that there are not and sizes that are none."""
    if law not in LAWS:
        raise OptionError(f"there is no noise law {law!r}; choose one of {', '.join(LAWS)}")
    check_size("size", size)
    check_enhance(enhance, enhance_size, enhance_laws)


def common_step(size: float, enhance: float, enhance_size: float) -> float:
    """Choose one grid for all rows: on another one the rows with more noise would stand out."""
    return choose_step(min(size, enhance_size) if enhance else size)
