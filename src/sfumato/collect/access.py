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
    """

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._session = secrets.token_urlsafe(32)

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

    def cookie(self, *, secure: bool) -> str:
        """Give the header that logs in; a secure cookie travels under TLS only."""
        return _header(self._session, "Path=/dashboard", secure=secure)

    def no_cookie(self, *, secure: bool) -> str:
        """Give the header that logs out."""
        return _header("", "Path=/dashboard; Max-Age=0", secure=secure)


def _header(value: str, scope: str, *, secure: bool) -> str:
    return f"{_COOKIE}={value}; {scope}; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
