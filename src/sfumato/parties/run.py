"""One party's part of a joint run: it meets the others, starts its engine, and leaves nothing behind when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError
from sfumato.parties.channel import PartyError
from sfumato.parties.config import PartyConfig
from sfumato.parties.network import NetworkChannel

if TYPE_CHECKING:
    from sfumato.parties.operations import Engine

__all__ = ["joined", "telling_others"]

_KINDS = {2: "its table or its settings must be mended", 3: "its table may not be released"}
_PATIENCE = 10  # an engine may compute for long; that its party is alive, the channel knows


@contextmanager
def telling_others(config: PartyConfig, version: str) -> Iterator[None]:
    """Tell those who wait already where this party fails before it meets them; not why, which is its own business."""
    try:
        yield
    except SfumatoError as error:
        try:
            place = config.place(version)
        except SfumatoError:  # its schema is what fails: the others hear that it differs
            place = replace(config, data=replace(config.data, schema=None)).place(version)
        NetworkChannel.decline(place, f"it could not begin ({_KINDS.get(error.exit_code, 'it failed')})")
        raise


@contextmanager
def joined(config: PartyConfig, version: str) -> Iterator[tuple[NetworkChannel, Engine | None]]:
    """Meet the other parties and give the channel to them, and the engine of a party that computes.

    Whatever ends the block early is told to the others; what failed elsewhere goes before what that led to here. The
    engine and all connections are gone afterwards.

    Parameters
    ----------
    version : str
        Of the package, the same at all parties.

    Raises
    ------
    PartyError
        Where another party, or the way to it, fails.
    """
    with telling_others(config, version):
        _check_engine(config)
    channel = NetworkChannel.connect(config.place(version))
    engine: Engine | None = None
    try:
        engine = _engine(config, channel)
        yield channel, engine
    except KeyboardInterrupt:
        channel.abort("it was interrupted")
        raise
    except SfumatoError as error:
        channel.abort(str(error))
        if isinstance(error, PartyError):
            channel.check()  # an engine ends with the party at its other side: that is what to say
        raise
    except BaseException as error:
        channel.abort(f"it met a {type(error).__name__}")
        raise
    finally:
        try:
            if engine is not None:
                engine.close()
        finally:
            channel.close()


def _check_engine(config: PartyConfig) -> None:
    """Refuse a party that could not compute before the others are called."""
    from sfumato.parties.plain import computing_parties
    from sfumato.parties.spu import engine_python

    if config.rank in computing_parties(config.plan.engine, len(config.peers)):
        engine_python(config.interpreter)


def _engine(config: PartyConfig, channel: NetworkChannel) -> Engine | None:
    """Start the engine, whose connections go through the channel's port."""
    from sfumato.parties.plain import computing_parties
    from sfumato.parties.spu import SpuEngine

    computing = computing_parties(config.plan.engine, len(config.peers))
    if config.rank not in computing:
        return None
    tunnel = channel.open_tunnel(computing)
    return SpuEngine(
        config.plan.engine,
        config.rank,
        computing,
        tunnel.addresses,
        python=config.interpreter,
        timeout=_PATIENCE * config.timeout,
        longest=config.step,
        failed=lambda: channel.failure,
        late=channel.late,
    )
