"""Who may see the dashboard: whoever knows the password, by a header or by a cookie that a login gives."""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie

from sfumato.collect.http import Request

__all__ = ["Access"]

_COOKIE = "sfumato-dashboard"
_PREFIX = b"Bearer "


class Access:
    """Checks the password of the dashboard. Sessions end with the process.

    Parameters
    ----------
    password : str
    secure : bool
        Whether cookies travel under TLS only.
    """

    def __init__(self, password: str, *, secure: bool) -> None:
        self._password = password.encode()
        self._session = secrets.token_urlsafe(32)
        self._secure = secure

    def __repr__(self) -> str:
        return "Access(password=...)"

    def knows(self, password: str) -> bool:
        """Tell whether this is the password."""
        return hmac.compare_digest(password.encode(), self._password)

    def allows(self, request: Request) -> bool:
        """Tell whether a request has the password in its Authorization header or the cookie of a login."""
        header = request.headers.get(b"authorization", b"")
        if header.startswith(_PREFIX):
            return hmac.compare_digest(header[len(_PREFIX) :], self._password)
        try:
            cookie = SimpleCookie(request.headers.get(b"cookie", b"").decode("latin-1")).get(_COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._session.encode())

    def cookie(self) -> str:
        """Give the header that logs in."""
        return self._header(self._session, "Path=/dashboard")

    def no_cookie(self) -> str:
        """Give the header that logs out."""
        return self._header("", "Path=/dashboard; Max-Age=0")

    def _header(self, value: str, scope: str) -> str:
        return f"{_COOKIE}={value}; {scope}; HttpOnly; SameSite=Strict" + ("; Secure" if self._secure else "")
