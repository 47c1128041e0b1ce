"""A client of the exchange gateway: one file, nothing but the standard library, Python 3.9 or later.

The gateway's own words, with prices and sizes as Decimal with the exchange's digits::

    from exchange_gateway import Gateway, BookTooStale, CircuitOpen

    gw = Gateway("http://127.0.0.1:8080", key="gw_...")       # the key is needed for balances only, on loopback
    book = gw.order_book("okx", "BTC/USDT", depth=5, max_age_ms=2000)
    print(book.bids[0].price, book.stale, book.freshness.age) # the age goes on after the answer came

    for book in gw.watch_order_book("okx", "BTC/USDT", depth=5):
        print(book.stale, book.freshness.reason, book.bids[:1], book.asks[:1])

ccxt's words, for a bot that was written for ccxt: one line changes, and numbers are floats as ccxt has them::

    import exchange_gateway as ccxt                           # was: import ccxt

    okx = ccxt.okx({"gateway": "http://127.0.0.1:8080"})      # or GATEWAY_URL and GATEWAY_KEY in the environment
    okx.fetch_order_book("BTC/USDT", 5)

Errors are the same in both: each code of the gateway is a class here (CircuitOpen is ``circuit_open``) below the class that
ccxt has for it, so ``except CircuitOpen`` and ``except ExchangeNotAvailable`` both work. Where ccxt is installed, its error
classes are used, and those of this module are them.

A Gateway may be used by many threads. It goes straight to the gateway: proxies of the environment are for the exchanges.
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import random
import re
import socket
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any, Callable, Deque, Dict, Generator, List, Mapping, NamedTuple, Optional, Tuple, Type
from urllib.parse import quote, urlencode, urlsplit

__version__ = "1.0.0"

# ---------------------------------------------------------------------------------------------------------------------
# Errors. First ccxt's own tree (ccxt 4, errorHierarchy), as far as a gateway that places no orders can raise it.

try:
    from ccxt.base.errors import (  # type: ignore[import-not-found]
        AccountNotEnabled, AccountSuspended, ArgumentsRequired, AuthenticationError, BadRequest, BadResponse, BadSymbol, BaseError,
        DDoSProtection, ExchangeError, ExchangeNotAvailable, InsufficientFunds, InvalidNonce, InvalidOrder, MarketClosed,
        NetworkError, NotSupported, NullResponse, OnMaintenance, OperationFailed, OperationRejected, OrderNotFound,
        PermissionDenied, RateLimitExceeded, RequestTimeout, RestrictedLocation,
    )
except ImportError:  # not installed, or too old to have them all

    class BaseError(Exception):
        """The top of ccxt's errors."""

    class ExchangeError(BaseError):
        """Trying again is of no use."""

    class AuthenticationError(ExchangeError):
        """No valid key: of the gateway, or of the gateway at the exchange."""

    class PermissionDenied(AuthenticationError):
        """The key may not do this."""

    class AccountNotEnabled(PermissionDenied):
        """ccxt's; the gateway never answers it."""

    class AccountSuspended(AuthenticationError):
        """ccxt's; the gateway never answers it."""

    class ArgumentsRequired(ExchangeError):
        """An argument is missing."""

    class BadRequest(ExchangeError):
        """The request is wrong."""

    class BadSymbol(BadRequest):
        """The exchange has no such pair."""

    class OperationRejected(ExchangeError):
        """Refused as things stand."""

    class MarketClosed(OperationRejected):
        """ccxt's; the gateway never answers it."""

    class RestrictedLocation(OperationRejected):
        """ccxt's; the gateway says PermissionDenied."""

    class InsufficientFunds(ExchangeError):
        """ccxt's; the gateway never answers it."""

    class InvalidOrder(ExchangeError):
        """ccxt's; the gateway never answers it."""

    class OrderNotFound(InvalidOrder):
        """ccxt's; the gateway never answers it."""

    class NotSupported(ExchangeError):
        """There is no such thing."""

    class OperationFailed(BaseError):
        """Trying again can help."""

    class NetworkError(OperationFailed):
        """Somebody on the way did not answer as asked."""

    class DDoSProtection(NetworkError):
        """The exchange shut the gateway out."""

    class RateLimitExceeded(NetworkError):
        """Too many requests."""

    class ExchangeNotAvailable(NetworkError):
        """The exchange does not answer, or not young enough."""

    class OnMaintenance(ExchangeNotAvailable):
        """The exchange is closed."""

    class InvalidNonce(NetworkError):
        """The exchange refused the time of a request."""

    class RequestTimeout(NetworkError):
        """No answer in time."""

    class BadResponse(OperationFailed):
        """An answer that makes no sense."""

    class NullResponse(BadResponse):
        """ccxt's; the gateway never answers it."""


class GatewayError(BaseError):
    """An answer that is a problem (RFC 9457), or none at all. ``except GatewayError`` catches all that this client raises."""

    code: str = ""

    def __init__(self, detail: str, problem: Optional[Mapping[str, Any]] = None, *, retryable: Optional[bool] = None,
                 retry_after: Optional[float] = None, status: Optional[int] = None) -> None:
        p = problem or {}
        self.detail = detail  #: a sentence
        self.code = _text(p.get("code")) or type(self).code  #: stable; ``GET /v1/errors`` says what each means
        self.status = status  #: of HTTP, None where there was no answer or the problem is one of several in an answer
        self.ccxt_class = _text(p.get("ccxt_class")) or _ccxt_name(type(self))
        self.origin = _text(p.get("origin"))  #: who failed: "gateway" or "exchange"
        self.exchange = _text(p.get("exchange"))
        self.retryable = p.get("retryable") is True if retryable is None else retryable  #: the same request can succeed later
        self.retry_after = retry_after  #: seconds until then, None if it is not known or of no use
        self.circuit = _text(p.get("circuit"))  #: "closed", "open" or "half_open"
        self.reason = _text(p.get("reason"))  #: what the exchange did, a kind such as "timeout"
        self.age = _seconds(p.get("age_ms"))  #: seconds, of the copy that was too old
        self.request_id = _text(p.get("request_id"))  #: what the gateway's log knows it by
        self.parameter = _text(p.get("parameter"))  #: the parameter at fault
        self.allowed = [a for a in _list(p.get("allowed")) if isinstance(a, str)]  #: what could stand in its place
        self.venues: Dict[str, GatewayError] = _venue_problems(p.get("venues"))  #: why each exchange did not answer
        self.problem = dict(p)  #: the document as it came
        super().__init__(str(self))

    def __str__(self) -> str:
        who = self.exchange + ": " if self.exchange else ""
        more = []
        if self.retry_after is not None:
            more.append("retry after %g s" % self.retry_after)
        if self.request_id:
            more.append("request " + self.request_id)
        return "[%s] %s%s%s" % (self.code, who, self.detail, " (%s)" % ", ".join(more) if more else "")

    def __reduce__(self) -> Tuple[Any, ...]:  # Exception would call the class with its text alone
        return _revive, (type(self), self.__dict__.copy())


def _revive(kind: Type[GatewayError], state: Dict[str, Any]) -> GatewayError:
    err = kind.__new__(kind)
    err.__dict__.update(state)
    err.args = (str(err),)
    return err


class InvalidParameter(GatewayError, BadRequest):
    """A parameter is missing, malformed or out of range."""
    code = "invalid_parameter"


class UnknownParameter(GatewayError, BadRequest):
    """The route has no such parameter."""
    code = "unknown_parameter"


class AccountAmbiguous(GatewayError, ArgumentsRequired):
    """Several accounts fit and none was named."""
    code = "account_ambiguous"


class Unauthenticated(GatewayError, AuthenticationError):
    """No key of this gateway, or one that is not valid."""
    code = "unauthenticated"


class Forbidden(GatewayError, PermissionDenied):
    """The key lacks the scope."""
    code = "forbidden"


class NotFound(GatewayError, BadRequest):
    """The gateway has nothing at this path."""
    code = "not_found"


class ExchangeUnknown(GatewayError, BadRequest):
    """No exchange of this name is enabled."""
    code = "exchange_unknown"


class SymbolUnknown(GatewayError, BadSymbol):
    """The exchange does not list this pair."""
    code = "symbol_unknown"


class SymbolDelisted(GatewayError, BadSymbol):
    """The exchange does not list this pair any more."""
    code = "symbol_delisted"


class AccountUnknown(GatewayError, BadRequest):
    """No account of this name is configured."""
    code = "account_unknown"


class BookNotHeld(GatewayError, BadRequest):
    """The gateway holds no book of this pair yet: ask for its order book or ticker once."""
    code = "book_not_held"


class MethodNotAllowed(GatewayError, NotSupported):
    """The route does not answer this method."""
    code = "method_not_allowed"


class Refused(GatewayError, OperationRejected):
    """An operator's action cannot be carried out now."""
    code = "refused"


class BodyTooLarge(GatewayError, BadRequest):
    """The request carries too large a body."""
    code = "body_too_large"


class URITooLong(GatewayError, BadRequest):
    """The request's target is over 8 KiB."""
    code = "uri_too_long"


class UnsupportedMediaType(GatewayError, BadRequest):
    """The body of an action has to be JSON."""
    code = "unsupported_media_type"


class UpgradeRequired(GatewayError, BadRequest):
    """The route speaks WebSocket."""
    code = "upgrade_required"


class ClientRateLimited(GatewayError, RateLimitExceeded):
    """This client has used up its own quota."""
    code = "client_rate_limited"


class HeaderTooLarge(GatewayError, BadRequest):
    """The request's headers are over 16 KiB."""
    code = "header_too_large"


class Internal(GatewayError, ExchangeError):
    """The gateway has a bug: report it with the request id."""
    code = "internal"


class NoAccounts(GatewayError, NotSupported):
    """The gateway has no credential of this exchange."""
    code = "no_accounts"


class ExchangeNotSupported(GatewayError, NotSupported):
    """The exchange, or this gateway, has no such thing."""
    code = "not_supported"


class ExchangeAuthFailed(GatewayError, AuthenticationError):
    """The exchange refused the gateway's credential, not the caller's key."""
    code = "exchange_auth_failed"


class ClockSkew(GatewayError, InvalidNonce):
    """The exchange refused the gateway's clock."""
    code = "clock_skew"


class ExchangeRestricted(GatewayError, PermissionDenied):
    """The exchange does not serve the place on earth from which the gateway asks."""
    code = "exchange_restricted"


class UpstreamError(GatewayError, ExchangeNotAvailable):
    """The exchange could not be reached, or answered with a server error."""
    code = "upstream_error"


class UpstreamBadResponse(GatewayError, BadResponse):
    """The exchange's answer could not be decoded, or was a book that cannot be true or a balance out of a cache."""
    code = "upstream_bad_response"


class UpstreamRateLimited(GatewayError, RateLimitExceeded):
    """The exchange asked the gateway to slow down."""
    code = "upstream_rate_limited"


class UpstreamBanned(GatewayError, DDoSProtection):
    """The exchange shut the gateway's address out for a while."""
    code = "upstream_banned"


class ExchangeMaintenance(GatewayError, OnMaintenance):
    """The exchange says that it is closed."""
    code = "exchange_maintenance"


class CircuitOpen(GatewayError, ExchangeNotAvailable):
    """The exchange kept failing, so it was not asked."""
    code = "circuit_open"


class Isolated(GatewayError, ExchangeNotAvailable):
    """An operator isolated the exchange."""
    code = "isolated"


class Withheld(GatewayError, ExchangeNotAvailable):
    """An operator withholds answers of this exchange, also old ones."""
    code = "withheld"


class BookTooStale(GatewayError, ExchangeNotAvailable):
    """No copy of the book is as young as the caller or the policy asks; ``age`` is that of the one there is."""
    code = "book_too_stale"


class NotLive(GatewayError, ExchangeNotAvailable):
    """``require_live``, and only a stale copy exists."""
    code = "not_live"


class MarketsUnavailable(GatewayError, ExchangeNotAvailable):
    """The gateway has no list of the exchange's pairs yet."""
    code = "markets_unavailable"


class BooksUnavailable(GatewayError, ExchangeNotAvailable):
    """No exchange has a book of this pair; ``venues`` says why."""
    code = "books_unavailable"


class PriceUnavailable(GatewayError, ExchangeNotAvailable):
    """No exchange that was asked can answer; ``venues`` says why."""
    code = "price_unavailable"


class BookOneSided(GatewayError, ExchangeNotAvailable):
    """One side of the book is empty, so there is no mid."""
    code = "book_one_sided"


class ActionIncomplete(GatewayError, ExchangeNotAvailable):
    """A part of an operator's action did not work."""
    code = "action_incomplete"


class Overloaded(GatewayError, RateLimitExceeded):
    """The gateway's own bound is reached."""
    code = "overloaded"


class LocalResource(GatewayError, ExchangeNotAvailable):
    """The gateway's machine had nothing left for a connection to the exchange."""
    code = "local_resource"


class ShuttingDown(GatewayError, ExchangeNotAvailable):
    """This gateway is stopping."""
    code = "shutting_down"


class UpstreamTimeout(GatewayError, RequestTimeout):
    """The exchange did not answer before the deadline."""
    code = "upstream_timeout"


class GatewayUnreachable(GatewayError, ExchangeNotAvailable):
    """The gateway itself was not reached, or the connection to it broke. Of this client alone: no answer has this code."""
    code = "gateway_unreachable"


class GatewayTimeout(GatewayError, RequestTimeout):
    """The gateway did not answer within ``timeout``. Of this client alone."""
    code = "gateway_timeout"


class BadAnswer(GatewayError, BadResponse):
    """What answered was not the gateway as it is documented. Of this client alone."""
    code = "bad_answer"


class Unsupported(GatewayError, NotSupported):
    """A method of ccxt's that the gateway has nothing for. Of this client alone."""
    code = "unsupported"


class MissingArgument(GatewayError, ArgumentsRequired):
    """An argument of a method of ccxt's is missing. Of this client alone."""
    code = "missing_argument"


_BY_CODE: Dict[str, Type[GatewayError]] = {c.code: c for c in GatewayError.__subclasses__()}

_CCXT = (
    ExchangeError, AuthenticationError, PermissionDenied, AccountNotEnabled, AccountSuspended, ArgumentsRequired, BadRequest, BadSymbol,
    OperationRejected, MarketClosed, RestrictedLocation, InsufficientFunds, InvalidOrder, OrderNotFound, NotSupported, OperationFailed,
    NetworkError, DDoSProtection, RateLimitExceeded, ExchangeNotAvailable, OnMaintenance, InvalidNonce, RequestTimeout, BadResponse,
    NullResponse,
)

# For codes that a newer gateway has: one class below each of ccxt's, so that the word that the answer has is the class raised.
_UNKNOWN: Dict[str, Type[GatewayError]] = {
    c.__name__: type("Unknown" + c.__name__, (GatewayError, c), {"__doc__": "A code that this client does not know.", "__module__": __name__})
    for c in _CCXT
}
globals().update({c.__name__: c for c in _UNKNOWN.values()})  # so that they can be pickled like the others


def _ccxt_name(kind: type) -> str:
    names = {c.__name__ for c in _CCXT}
    return next((c.__name__ for c in kind.__mro__ if c.__name__ in names), "BaseError")


def _problem_error(p: Mapping[str, Any], status: Optional[int], header: Optional[str] = None) -> GatewayError:
    """The error that a problem document is. It takes whatever is there: a wrong field is no reason to lose the rest."""
    kind = _BY_CODE.get(_text(p.get("code")) or "")
    if kind is None:
        fallback = "OperationFailed" if p.get("retryable") is True else "ExchangeError"
        kind = _UNKNOWN.get(_text(p.get("ccxt_class")) or "", _UNKNOWN[fallback])
    after = _seconds(p.get("retry_after_ms"))
    if after is None and p.get("retryable") is True:
        after = _retry_after(header)
    detail = _text(p.get("detail")) or _text(p.get("title")) or "The answer does not say what is wrong."
    return kind(detail, p, status=status, retry_after=after)


def _venue_problems(rows: Any) -> Dict[str, GatewayError]:
    return {
        r["exchange"]: _problem_error(r["problem"], None) for r in _list(rows)
        if isinstance(r, dict) and isinstance(r.get("exchange"), str) and isinstance(r.get("problem"), dict)
    }


def _text(v: Any) -> Optional[str]:
    return v if isinstance(v, str) else None


def _list(v: Any) -> List[Any]:
    return v if isinstance(v, list) else []


def _seconds(v: Any) -> Optional[float]:
    """Milliseconds as seconds. bool is an int in Python, and no number here."""
    return v / 1000 if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 53 else None


def _retry_after(header: Optional[str]) -> Optional[float]:
    return float(header) if header is not None and re.fullmatch(r"[0-9]{1,9}", header) else None


# ---------------------------------------------------------------------------------------------------------------------
# Answers. All are immutable. Times are aware and in UTC; durations are seconds.


class Level(NamedTuple):
    """One price of a book, and how much is offered at it."""
    price: Decimal
    size: Decimal


@dataclass(frozen=True)
class Freshness:
    """How far an answer can be trusted."""

    status: str  #: "live", or why not: "stale", and of streams "syncing" and "withheld"
    source: str  #: "stream", "rest", "memory" or "redis"
    confirmed_at: Optional[datetime]  #: when the exchange last vouched for it, by the gateway's clock
    changed_at: Optional[datetime]  #: when it last changed
    reason: Optional[str]  #: why it is not live: a kind of error, "not_asked", or of streams what this client saw ("disconnected")
    circuit: Optional[str]
    exchange_lag: Optional[float]  #: seconds between the exchange's clock and the gateway's
    age_at_receipt: Optional[float]  #: what the answer said, and how late a stream's message was read; None: no book yet
    received: float = field(repr=False)  #: time.monotonic() when it came

    @property
    def stale(self) -> bool:
        """What the gateway said. A book that was live when it came is not that for ever: see age."""
        return self.status != "live"

    @property
    def age(self) -> Optional[float]:
        """Seconds since the exchange vouched for it: as the answer said, and on from when it came. None: nobody ever did."""
        return None if self.age_at_receipt is None else self.age_at_receipt + (time.monotonic() - self.received)

    def older_than(self, seconds: float) -> bool:
        """Whether it is older than that now."""
        return self.age_at_receipt is None or self.age_at_receipt + (time.monotonic() - self.received) > seconds


@dataclass(frozen=True)
class OrderBook:
    """One book: bids from the highest price down, asks from the lowest up."""

    exchange: str
    symbol: str
    exchange_symbol: str
    bids: Tuple[Level, ...]
    asks: Tuple[Level, ...]
    freshness: Freshness
    depth: int  #: levels a side at most
    complete: bool  #: no level of that depth is missing
    timestamp: Optional[datetime]  #: the exchange's own time of it
    nonce: Optional[int]  #: the exchange's own sequence
    market_status: Optional[str] = None  #: set if the pair does not trade as usual
    epoch: Optional[str] = None  #: of streams: with seq the name of this version
    seq: Optional[int] = None
    missed: int = 0  #: of streams: how many versions came between the one before and this one
    market_status_at: Optional[datetime] = None  #: when the exchange said so

    @property
    def stale(self) -> bool:
        """Whether the gateway said that it is not live."""
        return self.freshness.stale

    @property
    def mid(self) -> Optional[Decimal]:
        """Half way between the best bid and the best ask, exactly; None for a book with one side."""
        return _exactly(lambda b, a: (b + a) / 2, self)

    @property
    def spread(self) -> Optional[Decimal]:
        """Best ask less best bid, exactly; None for a book with one side."""
        return _exactly(lambda b, a: a - b, self)


def _exactly(f: Callable[[Decimal, Decimal], Decimal], book: OrderBook) -> Optional[Decimal]:
    if not book.bids or not book.asks:
        return None
    with localcontext() as c:
        c.prec = 2 * _MAX_NUMBER  # whatever the caller's context would round to
        return f(book.bids[0].price, book.asks[0].price)


@dataclass(frozen=True)
class Ticker:
    """The top of a book and the figures of 24 hours, which have a freshness of their own."""

    exchange: str
    symbol: str
    exchange_symbol: str
    freshness: Freshness
    timestamp: Optional[datetime]
    bid: Optional[Decimal]
    bid_volume: Optional[Decimal]
    ask: Optional[Decimal]
    ask_volume: Optional[Decimal]
    mid: Optional[Decimal]
    spread: Optional[Decimal]
    last: Optional[Decimal]
    open: Optional[Decimal]
    high: Optional[Decimal]
    low: Optional[Decimal]
    change: Optional[Decimal]
    percentage: Optional[Decimal]
    base_volume: Optional[Decimal]
    quote_volume: Optional[Decimal]
    stats_freshness: Optional[Freshness]  #: None where there are no figures
    stats_reason: Optional[str]  #: why not, or why they are stale
    market_status: Optional[str] = None
    market_status_at: Optional[datetime] = None

    @property
    def stale(self) -> bool:
        """Whether the gateway said that bid and ask are not live."""
        return self.freshness.stale


@dataclass(frozen=True)
class Tickers:
    """Several tickers of one exchange, of books that the gateway holds already."""
    exchange: str
    tickers: Dict[str, Ticker]
    problems: Dict[str, GatewayError]  #: by symbol


@dataclass(frozen=True)
class Best:
    """The best level over several exchanges."""
    exchange: str
    price: Decimal
    size: Decimal


@dataclass(frozen=True)
class OrderBooks:
    """Every exchange's book of one pair, or why there is none."""
    symbol: str
    best_bid: Optional[Best]  #: over the live books
    best_ask: Optional[Best]
    books: Dict[str, OrderBook]  #: by exchange
    problems: Dict[str, GatewayError]


@dataclass(frozen=True)
class Price:
    """The mid of the first exchange that could answer."""

    symbol: str
    exchange: str
    mid: Decimal
    bid: Optional[Decimal]
    bid_volume: Optional[Decimal]
    ask: Optional[Decimal]
    ask_volume: Optional[Decimal]
    fallback: bool  #: it is not the first that was asked
    freshness: Freshness
    passed: Dict[str, GatewayError]  #: why those before it did not answer

    @property
    def stale(self) -> bool:
        """Whether the gateway said that it is not live."""
        return self.freshness.stale


@dataclass(frozen=True)
class Market:
    """A pair as the exchange lists it."""
    symbol: str
    exchange_symbol: str
    base: str
    quote: str
    status: str
    active: bool
    tick: Optional[Decimal]
    lot: Optional[Decimal]
    min_size: Optional[Decimal]
    min_notional: Optional[Decimal]
    alias_of: Optional[str]


@dataclass(frozen=True)
class Markets:
    """The pairs of one exchange."""
    exchange: str
    freshness: Freshness
    markets: Tuple[Market, ...]

    @property
    def stale(self) -> bool:
        """Whether the gateway said that the list is not live."""
        return self.freshness.stale


@dataclass(frozen=True)
class Status:
    """What an exchange announces, and in ``document`` how the gateway finds it: circuits, gates, budgets, streams."""
    exchange: str
    status: str  #: "ok", "maintenance", ... as ccxt's fetchStatus has it
    updated: Optional[datetime]
    eta: Optional[datetime]  #: when it is expected to be over
    message: Optional[str]
    reason: Optional[str]  #: why the exchange could not be asked
    document: Dict[str, Any]


@dataclass(frozen=True)
class Funds:
    """An amount of one asset."""
    free: Decimal
    used: Decimal
    total: Decimal  #: less what is owed: it can be negative
    debt: Optional[Decimal] = None  #: what is owed, None where nothing is


@dataclass(frozen=True)
class Balance:
    """The balances of one account. They were live when they came, and they are of no use later: there is no old balance."""
    exchange: str
    account: str
    account_type: str
    balances: Dict[str, Funds]  #: those that are not zero
    requested_at: datetime
    received_at: datetime
    timestamp: Optional[datetime]


@dataclass(frozen=True)
class ExchangeInfo:
    """An exchange that the gateway has."""
    exchange: str
    has: Dict[str, bool]
    wallets: Tuple[str, ...]
    circuits: Dict[str, str]  #: state by class


@dataclass(frozen=True)
class Exchanges:
    """The exchanges, and what of the gateway is degraded."""
    exchanges: Tuple[ExchangeInfo, ...]
    degraded: Tuple[str, ...]


@dataclass(frozen=True)
class CatalogueEntry:
    """One error code."""
    code: str
    status: int
    ccxt_class: str
    meaning: str
    action: str


# ---------------------------------------------------------------------------------------------------------------------
# Reading. Numbers are strings in JSON and become Decimal digit by digit.

_MAX_NUMBER = 512  # characters of one number, far above any exchange's
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class _Wrong(ValueError):
    """A document is not as it is documented."""


def _decimal(v: Any) -> Decimal:
    if not isinstance(v, str) or len(v) > _MAX_NUMBER or not _NUMBER.fullmatch(v):
        raise _Wrong("%.40r is no number in a string" % (v,))
    return Decimal(v)


def _moment(v: Any) -> datetime:
    m = _TIME.fullmatch(v) if isinstance(v, str) else None
    if m is None:
        raise _Wrong("%.40r is no time" % (v,))
    year, month, day, hour, minute, second = (int(g) for g in m.groups()[:6])
    return datetime(year, month, day, hour, minute, second, int((m.group(7) or "0").ljust(9, "0")[:6]), timezone.utc)


def _levels(v: Any) -> Tuple[Level, ...]:
    if not isinstance(v, list):
        raise _Wrong("%.40r is no side of a book" % (v,))
    out = []
    for row in v:
        if not isinstance(row, list) or len(row) != 2:
            raise _Wrong("%.40r is no level" % (row,))
        level = Level(_decimal(row[0]), _decimal(row[1]))
        if level.price < 0 or level.size < 0:
            raise _Wrong("%.40r is below zero" % (row,))
        out.append(level)
    return tuple(out)


class _Doc:
    """An object of JSON whose fields are asked for by type."""

    def __init__(self, v: Any) -> None:
        if not isinstance(v, dict):
            raise _Wrong("%.40r is no object" % (v,))
        self.fields: Dict[str, Any] = v

    def text(self, name: str) -> str:
        v = self.fields.get(name)
        if not isinstance(v, str):
            raise _Wrong("%s is no text: %.40r" % (name, v))
        return v

    def integer(self, name: str) -> int:
        v = self.fields.get(name)
        if not isinstance(v, int) or isinstance(v, bool) or not -(1 << 63) <= v < 1 << 63:
            raise _Wrong("%s is no integer of 64 bits: %.40r" % (name, v))
        return v

    def flag(self, name: str) -> bool:
        v = self.fields.get(name)
        if not isinstance(v, bool):
            raise _Wrong("%s is neither true nor false: %.40r" % (name, v))
        return v

    def items(self, name: str) -> List[Any]:
        v = self.fields.get(name)
        if not isinstance(v, list):
            raise _Wrong("%s is no list: %.40r" % (name, v))
        return v

    def doc(self, name: str) -> "_Doc":
        return _Doc(self.fields.get(name))

    def number(self, name: str) -> Decimal:
        return _decimal(self.fields.get(name))

    def time(self, name: str) -> datetime:
        return _moment(self.fields.get(name))

    def millis(self, name: str) -> datetime:
        try:
            return _EPOCH + timedelta(milliseconds=self.integer(name))
        except OverflowError:
            raise _Wrong("%s is no time: %.40r" % (name, self.fields.get(name))) from None

    def seconds(self, name: str) -> float:
        return self.integer(name) / 1000

    def maybe(self, read: Callable[[str], Any], name: str) -> Any:
        """None for what is null or missing."""
        return None if self.fields.get(name) is None else read(name)

    def texts(self, name: str) -> Tuple[str, ...]:
        v = self.items(name)
        if not all(isinstance(t, str) for t in v):
            raise _Wrong("%s are no texts" % name)
        return tuple(v)


def _freshness(d: _Doc, now: float) -> Freshness:
    return Freshness(
        status=d.text("status"), source=d.text("source"), confirmed_at=d.maybe(d.time, "confirmed_at"), changed_at=d.maybe(d.time, "changed_at"),
        reason=d.maybe(d.text, "reason"), circuit=d.maybe(d.text, "circuit"), exchange_lag=d.maybe(d.seconds, "exchange_lag_ms"),
        age_at_receipt=d.seconds("age_ms"), received=now,
    )


def _order_book(d: _Doc, now: float) -> OrderBook:
    return OrderBook(
        exchange=d.text("exchange"), symbol=d.text("symbol"), exchange_symbol=d.text("exchange_symbol"),
        bids=_levels(d.fields.get("bids")), asks=_levels(d.fields.get("asks")), freshness=_freshness(d.doc("freshness"), now),
        depth=d.integer("depth"), complete=d.flag("complete"), timestamp=d.maybe(d.millis, "timestamp"), nonce=d.maybe(d.integer, "nonce"),
        market_status=d.maybe(d.text, "market_status"), market_status_at=d.maybe(d.time, "market_status_at"),
    )


def _ticker(d: _Doc, now: float) -> Ticker:
    stats = d.doc("stats_freshness")
    unavailable = stats.text("status") == "unavailable"

    def figure(name: str) -> Optional[Decimal]:
        value: Optional[Decimal] = d.maybe(d.number, name)
        return value

    return Ticker(
        exchange=d.text("exchange"), symbol=d.text("symbol"), exchange_symbol=d.text("exchange_symbol"),
        freshness=_freshness(d.doc("freshness"), now), timestamp=d.maybe(d.millis, "timestamp"),
        bid=figure("bid"), bid_volume=figure("bidVolume"), ask=figure("ask"), ask_volume=figure("askVolume"), mid=figure("mid"),
        spread=figure("spread"), last=figure("last"), open=figure("open"), high=figure("high"), low=figure("low"), change=figure("change"),
        percentage=figure("percentage"), base_volume=figure("baseVolume"), quote_volume=figure("quoteVolume"),
        stats_freshness=None if unavailable else _freshness(stats, now), stats_reason=stats.maybe(stats.text, "reason"),
        market_status=d.maybe(d.text, "market_status"), market_status_at=d.maybe(d.time, "market_status_at"),
    )


def _tickers(d: _Doc, now: float) -> Tickers:
    tickers, problems = {}, {}
    for row in map(_Doc, d.items("tickers")):
        if row.fields.get("ticker") is not None:
            tickers[row.text("symbol")] = _ticker(row.doc("ticker"), now)
        else:
            problems[row.text("symbol")] = _problem_error(row.doc("problem").fields, None)
    return Tickers(d.text("exchange"), tickers, problems)


def _best(d: _Doc, name: str) -> Optional[Best]:
    if d.fields.get(name) is None:
        return None
    b = d.doc(name)
    return Best(b.text("exchange"), b.number("price"), b.number("size"))


def _order_books(d: _Doc, now: float) -> OrderBooks:
    books, problems = {}, {}
    for row in map(_Doc, d.items("venues")):
        if row.fields.get("orderbook") is not None:
            books[row.text("exchange")] = _order_book(row.doc("orderbook"), now)
        else:
            problems[row.text("exchange")] = _problem_error(row.doc("problem").fields, None)
    return OrderBooks(d.text("symbol"), _best(d, "best_bid"), _best(d, "best_ask"), books, problems)


def _price(d: _Doc, now: float) -> Price:
    return Price(
        symbol=d.text("symbol"), exchange=d.text("exchange"), mid=d.number("mid"), bid=d.maybe(d.number, "bid"),
        bid_volume=d.maybe(d.number, "bidVolume"), ask=d.maybe(d.number, "ask"), ask_volume=d.maybe(d.number, "askVolume"),
        fallback=d.flag("fallback"), freshness=_freshness(d.doc("freshness"), now), passed=_venue_problems(d.items("passed")),
    )


def _market(d: _Doc) -> Market:
    return Market(
        symbol=d.text("symbol"), exchange_symbol=d.text("exchange_symbol"), base=d.text("base"), quote=d.text("quote"),
        status=d.text("status"), active=d.flag("active"), tick=d.maybe(d.number, "tick"), lot=d.maybe(d.number, "lot"),
        min_size=d.maybe(d.number, "min_size"), min_notional=d.maybe(d.number, "min_notional"), alias_of=d.maybe(d.text, "alias_of"),
    )


def _markets(d: _Doc, now: float) -> Markets:
    return Markets(d.text("exchange"), _freshness(d.doc("freshness"), now), tuple(_market(_Doc(m)) for m in d.items("markets")))


def _status(d: _Doc, now: float) -> Status:
    info = d.doc("info")
    return Status(
        exchange=d.text("exchange"), status=d.text("status"), updated=d.maybe(d.millis, "updated"), eta=d.maybe(d.millis, "eta"),
        message=info.maybe(info.text, "message"), reason=info.maybe(info.text, "reason"), document=d.fields,
    )


def _balance(d: _Doc, now: float) -> Balance:
    rows = {asset: _Doc(row) for asset, row in d.doc("balances").fields.items()}
    return Balance(
        exchange=d.text("exchange"), account=d.text("account"), account_type=d.text("account_type"),
        balances={a: Funds(r.number("free"), r.number("used"), r.number("total"), r.maybe(r.number, "debt")) for a, r in rows.items()},
        requested_at=d.time("requested_at"), received_at=d.time("received_at"), timestamp=d.maybe(d.millis, "timestamp"),
    )


def _exchanges(d: _Doc, now: float) -> Exchanges:
    rows = [_Doc(e) for e in d.items("exchanges")]
    return Exchanges(
        tuple(ExchangeInfo(
            exchange=e.text("exchange"), has={k: v is True for k, v in e.doc("has").fields.items()}, wallets=e.texts("wallets"),
            circuits={k: str(v) for k, v in e.doc("circuits").fields.items()},
        ) for e in rows),
        d.texts("degraded"),
    )


def _catalogue(d: _Doc, now: float) -> Tuple[CatalogueEntry, ...]:
    rows = [_Doc(e) for e in d.items("errors")]
    return tuple(CatalogueEntry(e.text("code"), e.integer("status"), e.text("ccxt_class"), e.text("meaning"), e.text("action")) for e in rows)


def _refuse_constant(name: str) -> Any:
    raise _Wrong(name + " is no JSON")


def _parse(body: bytes, parse_float: Callable[[str], Any] = Decimal) -> Any:
    """JSON, and nothing that Python takes for JSON beside it. ValueError otherwise."""
    try:
        return json.loads(body.decode("utf-8"), parse_float=parse_float, parse_constant=_refuse_constant)
    except RecursionError:
        raise _Wrong("nested too deep") from None


# ---------------------------------------------------------------------------------------------------------------------
# The way to the gateway.

_MAX_BODY = 64 << 20  # bytes; every pair of an exchange is some MB
_MAX_IDLE = 8  # connections that are kept open between requests
_MAX_HEAD = 64 << 10  # bytes of the head of a stream's answer
_MAX_EVENT = 4 << 20  # bytes; a snapshot of 400 levels a side is under 100 KB
_READ = 64 << 10
_USER_AGENT = "exchange-gateway-python/" + __version__

# Between the gateway and this client: a proxy that has no gateway behind it says so with one of these, in words of its own.
_FROM_A_PROXY = (429, 502, 503, 504)


@dataclass(frozen=True)
class _Answer:
    status: int
    content_type: str
    retry_after: Optional[str]
    body: bytes
    bounded: bool = True  # its end was told beforehand; else the end of the connection was its end, or cut it off


class _Door:
    """Where the gateway is, and who asks. It opens connections and keeps a few; safe for many threads."""

    def __init__(self, base_url: str, key: Optional[str], timeout: float, ssl_context: Optional[ssl.SSLContext]) -> None:
        u = urlsplit(base_url)
        if u.scheme not in ("http", "https") or not u.hostname or u.username is not None or u.query or u.fragment:
            raise ValueError("base_url is http:// or https://, a host, perhaps a port and a path: http://127.0.0.1:8080")
        if key is not None and not re.fullmatch(r"[!-~]{1,256}", key):
            raise ValueError("the key is not one of the gateway's, which are gw_..., without spaces")  # and it is not shown
        if not timeout > 0:
            raise ValueError("timeout is a number of seconds above 0")
        self.tls = None if u.scheme == "http" else ssl_context or ssl.create_default_context()
        self.host, self.port = u.hostname, u.port or (80 if self.tls is None else 443)
        self.prefix = u.path.rstrip("/")
        self.authority = u.netloc
        self.timeout = timeout
        self.headers = {"Accept": "application/json, application/problem+json", "User-Agent": _USER_AGENT}
        if key is not None:
            self.headers["Authorization"] = "Bearer " + key
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []

    def target(self, path: str, params: Mapping[str, Any]) -> str:
        query = urlencode({k: v for k, v in params.items() if v is not None})
        return self.prefix + path + ("?" + query if query else "")

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for c in idle:
            c.close()

    def get(self, path: str, params: Mapping[str, Any]) -> _Answer:
        """One GET within the timeout. A connection that was kept and has been closed meanwhile is replaced once."""
        deadline = time.monotonic() + self.timeout
        target = self.target(path, params)
        with self._lock:
            conn = self._idle.pop() if self._idle else None
        if conn is not None:
            try:
                return self._ask(conn, target, deadline)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                pass  # before a byte of an answer came: the gateway had closed it, and did not read this
            except (OSError, http.client.HTTPException) as err:
                raise self._failed(err) from err
        try:
            return self._ask(self._connection(), target, deadline)
        except (OSError, http.client.HTTPException) as err:
            raise self._failed(err) from err

    def _connection(self) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection(self.host, self.port)
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls)

    def _ask(self, conn: http.client.HTTPConnection, target: str, deadline: float) -> _Answer:
        keep = False
        try:
            conn.timeout = self._left(deadline)
            if conn.sock is not None:
                conn.sock.settimeout(conn.timeout)
            conn.request("GET", target, headers=self.headers)
            conn.sock.settimeout(self._left(deadline))
            res = conn.getresponse()
            body, bounded = bytearray(), res.chunked or res.length is not None
            while True:
                if conn.sock is not None:  # None once an answer without a length ends the connection
                    conn.sock.settimeout(self._left(deadline))
                part = res.read1(_READ)
                if not part:
                    break
                body += part
                if len(body) > _MAX_BODY:
                    raise http.client.HTTPException("the answer is larger than %d bytes" % _MAX_BODY)
            if res.length:
                raise http.client.IncompleteRead(bytes(body), res.length)
            keep = not res.will_close
            res.close()  # read1 does not at the end of a body of known length, and the connection would not be free
            return _Answer(res.status, res.headers.get_content_type(), res.headers.get("Retry-After"), bytes(body), bounded)
        finally:
            if not keep or not self._put(conn):
                conn.close()

    def _put(self, conn: http.client.HTTPConnection) -> bool:
        with self._lock:
            if len(self._idle) >= _MAX_IDLE:
                return False
            self._idle.append(conn)
            return True

    @staticmethod
    def _left(deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the time is over")
        return left

    def _failed(self, err: Exception) -> GatewayError:
        if isinstance(err, socket.timeout):
            return GatewayTimeout("The gateway at %s did not answer within %g s." % (self.authority, self.timeout), retryable=True)
        why = err.strerror if isinstance(err, OSError) and err.strerror else type(err).__name__
        return GatewayUnreachable("The gateway at %s cannot be reached, or broke off: %s." % (self.authority, why), retryable=True)

    def connect(self, hold: Callable[[socket.socket], None]) -> None:
        """A connection for a stream. hold is given each socket before anything is waited for, so that somebody else can end it."""
        failure: OSError = ConnectionError("the name has no address")
        for family, kind, proto, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            try:
                sock = socket.socket(family, kind, proto)
            except OSError as err:
                failure = err
                continue
            try:
                hold(sock)
                sock.settimeout(self.timeout)
                sock.connect(address)
                if self.tls is not None:
                    sock = tls = self.tls.wrap_socket(sock, server_hostname=self.host, do_handshake_on_connect=False)
                    hold(tls)
                    tls.do_handshake()
                return
            except OSError as err:
                sock.close()
                failure = err
            except BaseException:
                sock.close()
                raise
        try:
            raise failure
        finally:
            del failure  # or it would hold this frame, and the frame it


def _refusal(a: _Answer) -> GatewayError:
    """The error that an answer other than 200 is."""
    if a.content_type == "application/problem+json":
        try:
            return _problem_error(_Doc(_parse(a.body)).fields, a.status, a.retry_after)
        except ValueError:
            pass  # told below, by its status
    if a.status in _FROM_A_PROXY:
        return GatewayUnreachable(
            "Something before the gateway answered HTTP %d." % a.status, status=a.status, retryable=True, retry_after=_retry_after(a.retry_after),
        )
    return BadAnswer("HTTP %d without a problem document: is this the gateway's address?" % a.status, status=a.status, retryable=False)


def _unreadable(a: _Answer, err: ValueError) -> GatewayError:
    """The error that an answer of 200 is that cannot be read."""
    if not a.bounded:
        return GatewayUnreachable("The gateway broke off in its answer.", status=a.status, retryable=True)
    return BadAnswer("The answer is not as it is documented: %s." % err, status=a.status, retryable=False)


# ---------------------------------------------------------------------------------------------------------------------
# Server-sent events.


class _Event(NamedTuple):
    id: Optional[str]
    type: str
    data: bytes


class _EventReader:
    """Takes bytes, gives events: the event stream format of HTML, with line ends as \\n or \\r\\n."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: List[bytes] = []
        self._size = 0

    def feed(self, part: bytes) -> List[_Event]:
        *lines, self._rest = (self._rest + part).split(b"\n")
        events = []
        for line in lines:
            line = line[:-1] if line.endswith(b"\r") else line
            if line:
                self._lines.append(line)
                self._size += len(line)
            else:
                event = self._event()
                if event is not None:
                    events.append(event)
        if self._size + len(self._rest) > _MAX_EVENT:
            raise _Wrong("an event of more than %d bytes" % _MAX_EVENT)
        return events

    def _event(self) -> Optional[_Event]:
        fields: Dict[bytes, List[bytes]] = {}
        for line in self._lines:
            name, _, value = line.partition(b":")
            fields.setdefault(name, []).append(value[1:] if value.startswith(b" ") else value)
        self._lines, self._size = [], 0
        if b"data" not in fields:
            return None  # a comment, or `retry` alone
        kind = fields.get(b"event", [b"message"])[-1].decode("utf-8", "replace")
        return _Event(fields[b"id"][-1].decode("utf-8", "replace") if b"id" in fields else None, kind, b"\n".join(fields[b"data"]))


class _Dechunker:
    """Takes the bytes of a chunked body (RFC 9112 section 7.1), gives those of the content."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0  # of the chunk, its line end not counted
        self._skip = 0  # of that line end
        self.ended = False

    def feed(self, part: bytes) -> bytes:
        data, out = self._rest + part, []
        while data and not self.ended:
            if self._left:
                out.append(data[:self._left])
                taken = len(out[-1])
                self._left, data = self._left - taken, data[taken:]
                self._skip = 0 if self._left else 2
            elif self._skip:
                taken = min(self._skip, len(data))
                self._skip, data = self._skip - taken, data[taken:]
            else:
                line, end, data = data.partition(b"\r\n")
                if not end:
                    data = line
                    break
                size = line.split(b";")[0].strip()
                if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", size):
                    raise _Wrong("a chunk without a size")
                self._left = int(size, 16)
                self.ended = self._left == 0
        if len(data) > 1024 and not self._left:
            raise _Wrong("a chunk's size of more than 1024 bytes")
        self._rest = b"" if self.ended else data
        return b"".join(out)


class _Stream:
    """One connection of server-sent events. It reads its socket itself: http.client cannot go on after a read that timed out,
    and a caller that wants a word every second needs just that."""

    def __init__(self, door: _Door) -> None:
        self._door = door
        self._reader = _EventReader()
        self._chunks: Optional[_Dechunker] = None
        self._events: Deque[_Event] = deque()
        self._sock: Optional[socket.socket] = None
        self._aborted = False

    def open(self, path: str, params: Mapping[str, Any], last_event_id: Optional[str] = None) -> None:
        """Connects and asks. close belongs to it, also if it fails."""
        try:
            self._door.connect(self._hold)
        except OSError as err:
            raise self._door._failed(err) from err
        self._open(self._door.target(path, params), last_event_id, time.monotonic() + self._door.timeout)

    def _hold(self, sock: socket.socket) -> None:
        self._sock = sock
        if self._aborted:  # looked at after the socket is there to be found, so one of the two threads sees the other's
            raise ConnectionAbortedError("it is over")

    def abort(self) -> None:
        """Ends it from another thread: whatever waits for the gateway fails at once."""
        self._aborted = True
        sock = self._sock
        if sock is not None:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which gives its session up under the reader
            except OSError:
                pass  # not connected, or not any more

    def _open(self, target: str, last_event_id: Optional[str], deadline: float) -> None:
        head = dict(self._door.headers, Host=self._door.authority, Accept="text/event-stream", Connection="close")
        if last_event_id is not None:
            head["Last-Event-ID"] = last_event_id
        request = "GET %s HTTP/1.1\r\n%s\r\n" % (target, "".join("%s: %s\r\n" % h for h in head.items()))
        assert self._sock is not None
        try:
            self._sock.sendall(request.encode("ascii"))
            data = b""
            while b"\r\n\r\n" not in data:
                if len(data) > _MAX_HEAD:
                    raise BadAnswer("The head of the answer is larger than %d bytes." % _MAX_HEAD, retryable=False)
                data += self._receive(deadline)
        except OSError as err:
            raise self._door._failed(err) from err
        text, _, rest = data.partition(b"\r\n\r\n")
        self._begin(text.decode("latin-1"), rest, deadline)

    def _begin(self, text: str, rest: bytes, deadline: float) -> None:
        first, *lines = text.split("\r\n")
        m = re.fullmatch(r"HTTP/1\.[01] ([0-9]{3})(?: .*)?", first)
        if m is None:
            raise BadAnswer("What answered does not speak HTTP/1.1.", retryable=False)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status, content_type = int(m.group(1)), headers.get("content-type", "").split(";")[0].strip().lower()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunks = _Dechunker()
        if status != 200:
            raise _refusal(_Answer(status, content_type, headers.get("retry-after"), self._whole(rest, deadline)))
        if content_type != "text/event-stream":
            raise BadAnswer("The answer is %.60r instead of a stream of events." % content_type, status=status, retryable=False)
        self._take(rest)

    def _whole(self, rest: bytes, deadline: float) -> bytes:
        """The body of a refusal, as far as it comes: Connection: close ends it."""
        body = bytearray()
        try:
            while True:
                body += rest if self._chunks is None else self._chunks.feed(rest)
                if len(body) > _MAX_EVENT or (self._chunks is not None and self._chunks.ended):
                    break
                rest = self._receive(deadline)
        except (OSError, _Wrong):
            pass
        return bytes(body)

    def _receive(self, deadline: float) -> bytes:
        """What comes next, at least a byte. socket.timeout at the deadline."""
        assert self._sock is not None
        self._sock.settimeout(_Door._left(deadline))
        part = self._sock.recv(_READ)
        if not part:
            raise ConnectionResetError("the stream ended")
        return part

    def _take(self, part: bytes) -> None:
        try:
            self._events.extend(self._reader.feed(part if self._chunks is None else self._chunks.feed(part)))
        except ValueError as err:
            raise BadAnswer("The stream is not readable: %s." % err, retryable=True) from err

    def next(self, timeout: float) -> Optional[_Event]:
        """The next event, None if none came in time. GatewayUnreachable when the stream has ended."""
        deadline = time.monotonic() + timeout
        while not self._events:
            if self._chunks is not None and self._chunks.ended:
                raise self._door._failed(ConnectionResetError())
            try:
                self._take(self._receive(deadline))
            except socket.timeout:
                return None
            except OSError as err:
                raise self._door._failed(err) from err
        return self._events.popleft()

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()


class _Delay:
    """How long messages of one connection lay somewhere before they were read: by how much later than the quickest of them they
    came. The gateway's clock and this one need not agree, and may drift apart by 1 ms a second, more than NTP corrects by."""

    _NOTICED = 0.25  # seconds; less is how networks are
    _DRIFT = 0.001

    def __init__(self) -> None:
        self._least: Optional[float] = None  # seconds from sent_at to its arrival
        self._sent = 0.0

    def of(self, sent_at: datetime, now: float) -> float:
        """Seconds that a message was late which is read now."""
        sent = (sent_at - _EPOCH).total_seconds()
        way = now - sent
        if self._least is None:
            self._least = way
        else:
            self._least = min(way, self._least + self._DRIFT * max(0.0, sent - self._sent))
        self._sent = sent
        late = way - self._least
        return late if late > self._NOTICED else 0.0


# ---------------------------------------------------------------------------------------------------------------------
# A book that is kept from a stream.


class _Gap(Exception):
    """A message does not belong to the one before it: what is held is not a book of the exchange any more."""


class _Kept:
    """One book, brought up to each message. It is live only while that is proven.

    A status "live" alone proves nothing about the levels that are held: a snapshot may follow it, after a reconnect or in a
    new epoch. So the book is live again with the next message that carries levels, or with a heartbeat, before which such a
    snapshot would have come."""

    def __init__(self, exchange: str, symbol: str, depth: int) -> None:
        self.names = (exchange, symbol, "")
        self.depth = depth
        self.epoch: Optional[str] = None
        self.seq: Optional[int] = None
        self.progress = False  # a message with levels came over this connection
        self._bids: Dict[Decimal, Decimal] = {}
        self._asks: Dict[Decimal, Decimal] = {}
        self._sides: Optional[Tuple[Tuple[Level, ...], Tuple[Level, ...]]] = None  # sorted, until a level changes
        self._complete = False
        self._nonce: Optional[int] = None
        self._timestamp: Optional[datetime] = None
        self._fresh = Freshness("syncing", "stream", None, None, "connecting", None, None, None, time.monotonic())
        self._promised = False  # the gateway calls it live; not proven yet
        self._delay = _Delay()
        self._unseen = False  # nobody has taken this version
        self._missed = 0  # versions that nobody took, since one was taken

    @property
    def last_event_id(self) -> Optional[str]:
        """The version that is held, as the gateway names it."""
        return None if self.epoch is None or self.seq is None else "%s-%d" % (self.epoch, self.seq)

    def connected(self) -> None:
        self.progress = self._promised = False
        self._delay = _Delay()

    def lost(self, reason: str) -> None:
        """Nothing more is heard: what is held stays, and is stale."""
        self._promised = False
        self._fresh = replace(self._fresh, status="stale", reason=reason)

    def forget(self) -> None:
        """What is held is wrong, or may not be shown. The next connection asks for a whole book."""
        self._set({}, {})
        self._missed += self._unseen
        self._unseen = False
        self.epoch = self.seq = None
        self._fresh = replace(
            self._fresh, status="stale", reason=self._fresh.reason or "gap", confirmed_at=None, changed_at=None, age_at_receipt=None,
        )

    def apply(self, e: _Event) -> bool:
        """Takes a message; whether the book or its freshness changed. _Gap, or ValueError for what is no message."""
        now = time.monotonic()
        if e.type not in ("heartbeat", "status", "snapshot", "update"):
            return False  # of a newer gateway, or its farewell, which the end of the connection follows
        d = _Doc(_parse(e.data))
        sent_at = d.maybe(d.time, "sent_at")
        late = 0.0 if sent_at is None else self._delay.of(sent_at, now)
        if e.type == "heartbeat":
            return self._prove()
        if e.type == "status":
            return self._status(d)
        self._version(e.type, d)
        self.progress = True
        status = d.text("status")
        reason = None if status == "live" else self._fresh.reason or status
        self._fresh = self._freshness(d, status, reason, late, now)
        self._promised = status == "live"
        return True

    def _status(self, d: _Doc) -> bool:
        status, was = d.text("status"), self._fresh
        if status == "live":
            self._promised = True
            return False  # live already, or not proven
        self._promised = False
        if status == "withheld":
            self.forget()
        self._fresh = replace(self._fresh, status=status, reason=d.maybe(d.text, "reason") or status)
        return was != self._fresh

    def _prove(self) -> bool:
        if not self._promised or self.seq is None or not self._fresh.stale:
            return False
        self._fresh = replace(self._fresh, status="live", reason=None)
        return True

    def _freshness(self, d: _Doc, status: str, reason: Optional[str], late: float, now: float) -> Freshness:
        confirmed = d.maybe(d.time, "confirmed_at")
        age = None if confirmed is None else max(0.0, (d.time("sent_at") - confirmed).total_seconds()) + late  # one clock, so no skew
        return Freshness(status, "stream", confirmed, d.maybe(d.time, "changed_at"), reason, None, None, age, now)

    def _version(self, kind: str, d: _Doc) -> None:
        epoch, seq = d.text("epoch"), d.integer("seq")
        levels = [(side, _levels(d.fields.get(name))) for side, name in ((self._bids, "bids"), (self._asks, "asks"))]
        if kind == "snapshot":
            self._set(*({l.price: l.size for l in rows if l.size} for _, rows in levels))
        elif self.seq is None or epoch != self.epoch or d.integer("prev_seq") != self.seq:
            raise _Gap()
        else:
            for side, rows in levels:
                for price, size in rows:
                    side.pop(price, None)  # also the digits of its price are those that came last
                    if size:
                        side[price] = size
        self._sides = None
        if max(len(self._bids), len(self._asks)) > self.depth or (self._bids and self._asks and max(self._bids) >= min(self._asks)):
            raise _Gap()  # no book looks like this: something was missed
        self.epoch, self.seq = epoch, seq
        self.names = (d.text("exchange"), d.text("symbol"), d.text("exchange_symbol"))
        self._missed += self._unseen + (d.integer("conflated") if kind == "snapshot" else 0)
        self._unseen = True
        self._complete = d.flag("complete")
        self._nonce, self._timestamp = d.maybe(d.integer, "exchange_seq"), d.maybe(d.time, "exchange_time")

    def _set(self, bids: Dict[Decimal, Decimal], asks: Dict[Decimal, Decimal]) -> None:
        self._bids, self._asks, self._sides = bids, asks, None

    def book(self) -> OrderBook:
        """What is held. It counts as seen."""
        missed, self._missed, self._unseen = self._missed, 0, False
        if self._sides is None:
            self._sides = (
                tuple(Level(p, self._bids[p]) for p in sorted(self._bids, reverse=True)),
                tuple(Level(p, self._asks[p]) for p in sorted(self._asks)),
            )
        exchange, symbol, native = self.names
        return OrderBook(
            exchange, symbol, native, self._sides[0], self._sides[1], self._fresh, self.depth, self._complete and self.seq is not None,
            self._timestamp, self._nonce, None, self.epoch, self.seq, missed,
        )


_MAX_BACKOFF = 30.0  # seconds


def _backoff(attempts: int, retry_after: Optional[float]) -> float:
    """Full jitter from 1 s, doubling to 30 s, so that many clients do not come back at once; never before Retry-After."""
    return max(retry_after or 0.0, random.uniform(0.05, min(_MAX_BACKOFF, 2.0 ** min(attempts, 10))))


# ---------------------------------------------------------------------------------------------------------------------
# Streams are read all the time.


class _Reader:
    """Reads a stream in a thread of its own, whatever its consumer does: what waits in the buffers of a connection grows old,
    and nobody sees that it does. Those who say what is read keep what is newest, and little of it."""

    LEFT_FIRST = False  # whether what is pending is given before the error that ended the reading, or not any more
    _STOP = 2.0  # seconds; only the look-up of a name cannot be interrupted, and then the thread ends by itself a little later

    def __init__(self, door: _Door) -> None:
        self._door = door
        # Re-entrant, because garbage is collected anywhere: also in the thread of a reader whose consumer was left as garbage.
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="exchange-gateway-stream", daemon=True)
        self._process = 0  # whose thread it is
        self._stream: Optional[_Stream] = None
        self._over = False  # nobody wants it any more
        self._end: Optional[BaseException] = None  # why it came to an end by itself

    def read(self) -> None:
        """Listens until the reader is over, or an error that is the consumer's."""
        raise NotImplementedError

    def heed(self, e: _Event) -> None:
        """Takes an event in."""
        raise NotImplementedError

    def pending(self) -> bool:
        """Whether there is something that the consumer has not seen. The lock is held, here and in take."""
        raise NotImplementedError

    def take(self) -> Any:
        """What the consumer gets next, also if it has seen it."""
        raise NotImplementedError

    def items(self, every: Optional[float] = None) -> Generator[Any, None, None]:
        """What is new when it is asked for, and without news what is held, each so many seconds. It begins to read when it is first
        asked, and has stopped when it is closed, left as garbage, or at the end of the interpreter, whose threads cannot be waited
        for before that: hence a daemon, ended by hand."""
        self._process = os.getpid()
        self._thread.start()
        atexit.register(self.close)
        try:
            shown = time.monotonic()
            while self._wait(None if every is None else shown + every):
                with self._changed:
                    item = self.take()
                shown = time.monotonic()
                yield item
        finally:
            self.close()

    def _wait(self, until: Optional[float]) -> bool:
        """Whether there is something to take, after waiting for it. The error that ended the reading is raised."""
        if os.getpid() != self._process:
            raise RuntimeError("a watch does not go on in a forked process: begin one there")
        with self._changed:
            while not (self.pending() or self._over or self._end is not None):
                left = 1.0 if until is None else until - time.monotonic()  # in turns: on Windows no signal ends a wait
                if left <= 0:
                    break
                self._changed.wait(min(left, 1.0))
            if self._over:
                return False
            end = self._end
            if end is None or (self.LEFT_FIRST and self.pending()):
                return True
            self._end = None
        try:
            raise end
        finally:
            del end  # or it would hold this frame, and the frame it

    def _run(self) -> None:
        try:
            self.read()
        except BaseException as err:  # whatever it is, the consumer has to know
            with self._changed:
                self._end = err
                self._changed.notify_all()

    def close(self) -> None:
        """Ends the thread and its connection, and waits for that."""
        if self._over or os.getpid() != self._process:
            return  # of a forked process the connection is not, and there is no thread in it
        with self._changed:
            self._over = True
            self._changed.notify_all()
            if self._stream is not None:
                self._stream.abort()
        atexit.unregister(self.close)
        if self._thread is not threading.current_thread():
            self._thread.join(self._STOP)

    def pause(self, seconds: float) -> None:
        """Returns early when it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._over, seconds)

    def listen(self, path: str, params: Mapping[str, Any], silence: float, last_event_id: Optional[str] = None) -> None:
        """One connection, until it was silent for too long or the reader is over."""
        stream = _Stream(self._door)
        with self._changed:
            if self._over:
                return
            self._stream = stream
        try:
            stream.open(path, params, last_event_id)
            heard = time.monotonic()
            while not self._over:
                e = stream.next(max(0.001, heard + silence - time.monotonic()))
                now = time.monotonic()
                if e is not None:
                    heard = now
                    self.heed(e)
                elif now - heard >= silence:
                    return
        finally:
            with self._changed:
                self._stream = None
            stream.close()


class _BookReader(_Reader):
    """Keeps one book, over as many connections as it takes. Its consumer sees it as it stands: what came between is not kept."""

    def __init__(self, door: _Door, exchange: str, symbol: str, depth: int, silence: float) -> None:
        super().__init__(door)
        self._params = {"exchange": exchange, "symbol": symbol, "depth": depth}
        self._silence = silence
        self._kept = _Kept(exchange, symbol, depth)
        self._news = False

    def pending(self) -> bool:
        return self._news

    def take(self) -> OrderBook:
        self._news = False
        return self._kept.book()

    def read(self) -> None:
        attempts = 0
        while not self._over:
            reason, wait = "disconnected", None
            try:
                with self._changed:
                    self._kept.connected()
                self.listen("/v1/stream/orderbook", self._params, self._silence, self._kept.last_event_id)
                reason = "silent"
            except _Gap:
                reason = "gap"
            except GatewayError as err:
                if not err.retryable:
                    raise
                if not isinstance(err, GatewayUnreachable):
                    reason, wait = err.code, err.retry_after
                elif err.status is not None:
                    wait = err.retry_after
            with self._changed:
                self._kept.lost(reason)
                self._tell()
                attempts = 0 if self._kept.progress else attempts + 1
                self._kept.progress = False
            self.pause(_backoff(attempts, wait))

    def heed(self, e: _Event) -> None:
        with self._changed:  # a consumer sees no book that is half changed, nor one that was found to be wrong
            try:
                if self._kept.apply(e):
                    self._tell()
            except _Gap:
                self._kept.forget()
                raise
            except ValueError as err:
                self._kept.forget()
                raise BadAnswer("The stream is not readable: %s." % err, retryable=True) from err

    def _tell(self) -> None:
        self._news = True
        self._changed.notify_all()


class _CircuitReader(_Reader):
    """Keeps what operators see, of one connection: every event since the newest snapshot that its consumer has not seen, and the newest
    state. At MOST events it gives up, since the next connection has them all in its snapshot."""

    LEFT_FIRST = True
    MOST = 1000

    def __init__(self, door: _Door, silence: float) -> None:
        super().__init__(door)
        self._silence = silence
        self._items: Deque[Tuple[str, Dict[str, Any]]] = deque()

    def pending(self) -> bool:
        return bool(self._items)

    def take(self) -> Tuple[str, Dict[str, Any]]:
        return self._items.popleft()

    def read(self) -> None:
        self.listen("/v1/circuits/events", {}, self._silence)
        if not self._over:
            raise GatewayUnreachable("The stream was silent for %g s." % self._silence, retryable=True)

    def heed(self, e: _Event) -> None:
        try:
            item = e.type, _Doc(_parse(e.data)).fields
        except ValueError as err:
            raise BadAnswer("The stream is not readable: %s." % err, retryable=True) from err
        with self._changed:
            if e.type == "snapshot":
                self._items.clear()
            elif e.type == "state":
                self._items = deque(i for i in self._items if i[0] != "state")
            if len(self._items) >= self.MOST:
                raise GatewayUnreachable("The loop is %d events behind, and gets no more of this connection." % self.MOST, retryable=True)
            self._items.append(item)
            self._changed.notify_all()


# ---------------------------------------------------------------------------------------------------------------------
# The client.


class Gateway:
    """A gateway, by its address. Every method is one request unless it says otherwise, and raises GatewayError.

    timeout: seconds for one request, connecting and reading included. A book or a balance takes the gateway at most 5 s; the
    first list of an exchange's pairs can take 20 s, and a GatewayTimeout then is worth trying again.
    ssl_context: for https with a certificate of your own authority."""

    def __init__(self, base_url: str = "http://127.0.0.1:8080", key: Optional[str] = None, timeout: float = 10.0,
                 ssl_context: Optional[ssl.SSLContext] = None) -> None:
        self._door = _Door(base_url, key, timeout, ssl_context)

    def __repr__(self) -> str:
        return "Gateway(%r)" % self._door.authority  # no key

    def __enter__(self) -> "Gateway":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept. The next request opens a new one."""
        self._door.close()

    def exchanges(self) -> Exchanges:
        """The exchanges that are enabled."""
        return self._get(_exchanges, "/v1/exchanges")

    def order_book(self, exchange: str, symbol: str, depth: Optional[int] = None, max_age_ms: Optional[int] = None,
                   require_live: bool = False) -> OrderBook:
        """One book. max_age_ms: the age that you accept, BookTooStale beyond it; require_live: NotLive instead of a stale one."""
        return self._get(_order_book, _of(exchange, "orderbook"), symbol=symbol, depth=depth, max_age_ms=max_age_ms, require=_live(require_live))

    def ticker(self, exchange: str, symbol: str, max_age_ms: Optional[int] = None, require_live: bool = False) -> Ticker:
        """Best bid and ask, mid, spread and the figures of 24 hours."""
        return self._get(_ticker, _of(exchange, "ticker"), symbol=symbol, max_age_ms=max_age_ms, require=_live(require_live))

    def tickers(self, exchange: str, symbols: List[str]) -> Tickers:
        """Up to 50 tickers from books that the gateway holds already, of whatever age; it asks no exchange."""
        return self._get(_tickers, _of(exchange, "tickers"), symbols=",".join(symbols))

    def markets(self, exchange: str) -> Markets:
        """The pairs that an exchange lists."""
        return self._get(_markets, _of(exchange, "markets"))

    def status(self, exchange: str) -> Status:
        """What an exchange announces, and how the gateway finds it."""
        return self._get(_status, _of(exchange, "status"))

    def balance(self, exchange: str, account: Optional[str] = None, wallet: Optional[str] = None) -> Balance:
        """Balances, live or an error. Needs a key with account:read. account may be left out if exactly one fits."""
        return self._get(_balance, _of(exchange, "balance"), account=account, wallet=wallet)

    def order_books(self, symbol: str, depth: Optional[int] = None, max_age_ms: Optional[int] = None) -> OrderBooks:
        """Every exchange's book of a pair, or why there is none, within a second."""
        return self._get(_order_books, "/v1/orderbooks", symbol=symbol, depth=depth, max_age_ms=max_age_ms)

    def price(self, symbol: str, exchanges: Optional[List[str]] = None, max_age_ms: Optional[int] = None) -> Price:
        """The mid of the first exchange, in your order, that can answer."""
        order = None if exchanges is None else ",".join(exchanges)
        return self._get(_price, "/v1/price", symbol=symbol, exchanges=order, max_age_ms=max_age_ms)

    def circuits(self) -> Dict[str, Any]:
        """Everything that an operator sees, as the document that it is."""
        return self._get(lambda d, now: d.fields, "/v1/circuits")

    def errors(self) -> Tuple[CatalogueEntry, ...]:
        """Every error code of this gateway."""
        return self._get(_catalogue, "/v1/errors")

    def openapi(self) -> Dict[str, Any]:
        """The contract of the HTTP API, OpenAPI 3.1."""
        return self._get(lambda d, now: d.fields, "/openapi.json")

    def ready(self) -> Tuple[str, ...]:
        """What is degraded, empty if nothing. ShuttingDown or GatewayUnreachable while the gateway takes no requests."""
        return self._get(lambda d, now: d.texts("degraded"), "/readyz")

    def live(self) -> None:
        """Returns if the process answers."""
        return self._get(lambda d, now: None, "/livez")

    def watch_order_book(self, exchange: str, symbol: str, depth: int = 50, *, every: Optional[float] = None,
                         silence: float = 25.0) -> Generator[OrderBook, None, None]:
        """The book as it changes, for ever, and at once when it is not live any more. A thread keeps it, from the first step of the
        loop until it is left: a loop that is slower than the book misses versions (``missed`` of them), not the newest one.

        A lost connection is made again (1 s doubling to 30 s, never before Retry-After), and a message that does not fit what
        is held makes the client ask for the whole book. Meanwhile the book that you get is the last one, stale, with the
        reason: "disconnected", "silent", "gap", or the code of the gateway's refusal. Before the first snapshot, and while an
        operator withholds it, the book is empty and stale. A refusal that no repeating can help is raised.

        depth: 1, 5, 20, 50, 100 or 400. every: a book at least each so many seconds, also when nothing changes, so that a
        bot's loop goes on. silence: seconds without a message, after which the connection counts as lost; the gateway sends
        one each 15 s. ``close()`` of what this returns ends the thread and its connection at once."""
        if not silence > 0 or (every is not None and not every > 0):
            raise ValueError("every and silence are numbers of seconds above 0")
        return _BookReader(self._door, exchange, symbol, depth, silence).items(every)

    def watch_circuits(self, silence: float = 25.0) -> Generator[Tuple[str, Dict[str, Any]], None, None]:
        """What operators see, as it changes: ("snapshot" | "event" | "state", document), until the connection ends, which is
        a GatewayUnreachable. Each connection begins with a snapshot, so calling it again is all it takes to go on. A loop that is
        slow gets all events and the newest state alone; with 1,000 events behind it the watch ends."""
        if not silence > 0:
            raise ValueError("silence is a number of seconds above 0")
        return _CircuitReader(self._door, silence).items()

    def _get(self, read: Callable[[_Doc, float], Any], path: str, **params: Any) -> Any:
        a = self._door.get(path, params)
        now = time.monotonic()
        if a.status != 200:
            raise _refusal(a)
        try:
            return read(_Doc(_parse(a.body)), now)
        except ValueError as err:
            raise _unreadable(a, err) from err


def _of(exchange: str, what: str) -> str:
    return "/v1/exchanges/%s/%s" % (quote(exchange, safe=""), what)


def _live(required: bool) -> Optional[str]:
    return "live" if required else None


# ---------------------------------------------------------------------------------------------------------------------
# ccxt's words. Here, and here alone, numbers are floats.

exchanges = ["binance", "okx", "coinbase"]  # ccxt's list of its classes

DECIMAL_PLACES, SIGNIFICANT_DIGITS, TICK_SIZE = 2, 3, 4  # ccxt's precision modes; the exchanges here have ticks

DEFAULT_MAX_AGE_MS = 5000  # of a book for a bot that does not look for a label

# Names of ccxt's methods, unified ones in both spellings (create_order, createOrder) and those of an exchange's own endpoints
# (public_get_..., sapiGet...), so that a bot which calls one catches NotSupported, and not what nobody catches.
_NOT_OURS = re.compile(
    r"(fetch|watch|un_?watch|create|cancel|edit|withdraw|deposit|transfer|set|borrow|repay|add|reduce|close|load|calculate|parse|safe|build"
    r"|enable|check|convert|redeem|sign|handle|filter|sort|account|currency|fee|decimal|market|cost|number|price|amount|is|get|redirect"
    r"|(?:[a-z][a-z0-9_]*?)?(?:[Pp]ublic|[Pp]rivate|sapi|eapi|fapi|dapi|papi)\w*?_?"
    r"(?:get|post|put|delete|patch|Get|Post|Put|Delete|Patch))(_[a-z0-9_]+|[A-Z0-9]\w*)"
    r"|withdraw|transfer|deposit|sign|request|fetch|fetch2|throttle|account|currency|nonce|describe|convert_trading_view_to_ohlcv",
)


class _Has(Dict[str, Any]):
    """ccxt's `has`: what is not named is not there."""

    def __missing__(self, name: str) -> bool:
        return False


class Exchange:
    """An exchange behind the gateway, in the shape of ccxt's: `ccxt.okx({...})` with ccxt's configuration.

    Of it this client reads `timeout` (ms), `enableRateLimit` and `options`; exchange credentials are not needed and never
    sent, since the gateway has its own. New are `gateway` (its address; GATEWAY_URL, or http://127.0.0.1:8080) and `gatewayKey`
    (GATEWAY_KEY; balances need one).

    A book or a ticker that is older than 5,000 ms is ExchangeNotAvailable, because such a bot does not look for a label.
    `options: {'accept_stale': ms}`, or the same in `params` of one call, accepts a greater age; `info.stale` and
    `info.freshness` say then what it is. Orders are not placed here: NotSupported."""

    id = ""
    name = ""
    precisionMode = TICK_SIZE
    rateLimit = 10  # ms between requests with enableRateLimit: the gateway's own limit of a client is 100 a second

    def __init__(self, config: Optional[Mapping[str, Any]] = None) -> None:
        config = dict(config or {})
        _refuse_like(config, ("gateway", "stale", "maxage"), ("gateway", "gatewayKey"), "the configuration")
        url = config.pop("gateway", None) or os.environ.get("GATEWAY_URL") or "http://127.0.0.1:8080"
        key = config.pop("gatewayKey", None) or os.environ.get("GATEWAY_KEY") or None
        for credential in ("apiKey", "secret", "password", "uid", "privateKey"):
            config.pop(credential, None)  # the exchange's; the gateway has its own, and nobody else needs to see these
        self.timeout = config.pop("timeout", 10000)  # ms, as ccxt counts
        self.enableRateLimit = config.pop("enableRateLimit", True)
        self.options: Dict[str, Any] = dict(config.pop("options", None) or {})
        self.rateLimit = config.pop("rateLimit", type(self).rateLimit)
        self.markets: Optional[Dict[str, Dict[str, Any]]] = None
        self.markets_by_id: Optional[Dict[str, List[Dict[str, Any]]]] = None
        self.symbols: Optional[List[str]] = None
        self.currencies: Dict[str, Dict[str, Any]] = {}
        self.has = _Has({
            "spot": True, "publicAPI": True, "privateAPI": True, "fetchMarkets": True, "fetchOrderBook": True, "fetchTicker": True,
            "fetchTickers": True, "fetchBalance": True, "fetchStatus": True, "fetchTime": False, "createOrder": False,
            "cancelOrder": False, "fetchOHLCV": False, "fetchTrades": False, "fetchCurrencies": False,
        })
        self.gateway = Gateway(url, key, self.timeout / 1000)
        self._pace = threading.Lock()
        self._next = 0.0

    def __repr__(self) -> str:
        return "%s(%r)" % (type(self).__name__, self.gateway)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not _NOT_OURS.fullmatch(name):
            raise AttributeError("%s has no attribute %r" % (type(self).__name__, name))

        def refuse(*_: Any, **__: Any) -> Any:
            raise Unsupported(
                "%s() is not offered: the gateway answers books, tickers, markets, balances and status, and places no orders. "
                "Ask the exchange itself for it, with ccxt's own class." % name,
            )
        return refuse

    # What ccxt's bots call.

    timeframes: Dict[str, str] = {}  # there are no candles

    def load_markets(self, reload: bool = False, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Dict[str, Any]]:
        """The markets by symbol, asked for once."""
        if self.markets is None or reload:
            rows = self.fetch_markets(params)
            by_id: Dict[str, List[Dict[str, Any]]] = {}
            for m in rows:
                by_id.setdefault(m["id"], []).append(m)
            codes = sorted({m[side] for m in rows for side in ("base", "quote")})
            self.markets_by_id, self.symbols = by_id, sorted(m["symbol"] for m in rows)
            self.currencies = {c: {"id": c, "code": c, "precision": None, "info": {}} for c in codes}
            self.markets = {m["symbol"]: m for m in rows}
        return self.markets

    def market(self, symbol: str) -> Dict[str, Any]:
        """One market; BadSymbol if there is none. load_markets comes first, as in ccxt."""
        if self.markets is None:
            raise _UNKNOWN["ExchangeError"](self.id + " markets not loaded")
        if symbol in self.markets:
            return self.markets[symbol]
        if self.markets_by_id and symbol in self.markets_by_id:
            return self.markets_by_id[symbol][0]
        raise SymbolUnknown("%s does not have market symbol %s" % (self.id, symbol))

    def fetch_markets(self, params: Optional[Mapping[str, Any]] = None) -> List[Dict[str, Any]]:
        """Every pair that the exchange lists."""
        self._only(params)
        self._wait()
        return [_ccxt_market(m) for m in self.gateway.markets(self.id).markets]

    def fetch_order_book(self, symbol: str, limit: Optional[int] = None, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """One book, at most 5,000 ms old unless accept_stale says more."""
        return self._ask("orderbook", symbol=symbol, depth=limit, **self._accept(params))

    def fetch_l2_order_book(self, symbol: str, limit: Optional[int] = None, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """The same: every book here is by price."""
        return self.fetch_order_book(symbol, limit, params)

    def fetch_ticker(self, symbol: str, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """One ticker, at most 5,000 ms old unless accept_stale says more."""
        return self._ask("ticker", symbol=symbol, **self._accept(params))

    def fetch_tickers(self, symbols: Optional[List[str]] = None, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Dict[str, Any]]:
        """The tickers of these symbols, one request each. Not of all: the gateway holds the books that somebody asks for."""
        if not symbols:
            raise MissingArgument("fetch_tickers() needs the symbols: the gateway holds the books that somebody asks for, not all.")
        return {symbol: self.fetch_ticker(symbol, params) for symbol in symbols}

    def fetch_balance(self, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Balances, live or an error. params: account, and type or wallet, "trading" (also "spot") or "funding"."""
        p = self._only(params, "account", "type", "wallet")
        wallet = p.get("wallet") or p.get("type")
        return self._ask("balance", account=p.get("account"), wallet="trading" if wallet == "spot" else wallet)

    def fetch_status(self, params: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """What the exchange announces; in info how the gateway finds it."""
        self._only(params)
        self._wait()
        s = self.gateway.status(self.id)
        return {"status": s.status, "updated": _epoch_ms(s.updated), "eta": _epoch_ms(s.eta), "url": None, "info": s.document}

    def market_id(self, symbol: str) -> str:
        """The exchange's own name of a market."""
        return self.market(symbol)["id"]

    def price_to_precision(self, symbol: str, price: Any) -> str:
        """The price as the exchange takes it: rounded to the market's tick, halves away from zero. InvalidOrder if it is 0 then."""
        return self._to_precision(symbol, "price", "price", price, ROUND_HALF_UP)

    def amount_to_precision(self, symbol: str, amount: Any) -> str:
        """The amount as the exchange takes it: cut off to the market's lot. InvalidOrder if it is 0 then."""
        return self._to_precision(symbol, "amount", "amount", amount, ROUND_DOWN)

    def cost_to_precision(self, symbol: str, cost: Any) -> str:
        """An amount of the quote currency, cut off to the market's tick as ccxt does. 0 is 0."""
        return self._to_precision(symbol, "cost", "price", cost, ROUND_DOWN)

    def _to_precision(self, symbol: str, what: str, step_of: str, value: Any, rounding: str) -> str:
        """A whole number of steps as text, exactly: the float next to a step, which ccxt's markets have, is read as it is written."""
        step = self.market(symbol)["precision"][step_of]
        if step is None:
            raise Unsupported("%s does not say the %s step of %s." % (self.id, step_of, symbol))
        try:
            if isinstance(value, bool):
                raise ValueError(value)
            number, unit = Decimal(str(value)), Decimal(str(step))
            if not number.is_finite():
                raise ValueError(value)
            with localcontext() as c:
                c.prec = 2 * _MAX_NUMBER
                rounded = (number / unit).quantize(Decimal(1), rounding=rounding) * unit
        except (ArithmeticError, ValueError):
            raise InvalidParameter("%.40r is no %s" % (value, what), retryable=False) from None
        if rounded == 0 and what != "cost":
            raise _UNKNOWN["InvalidOrder"]("%s %s of %s must be greater than minimum %s precision of %s" % (self.id, what, symbol, what, unit))
        text = format(rounded, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text

    def close(self) -> None:
        """Closes the connections that are kept."""
        self.gateway.close()

    # ccxt's time.

    @staticmethod
    def milliseconds() -> int:
        """Now, in ms since 1970."""
        return time.time_ns() // 1_000_000

    @staticmethod
    def seconds() -> int:
        """Now, in s since 1970."""
        return time.time_ns() // 1_000_000_000

    @staticmethod
    def iso8601(timestamp: Optional[int] = None) -> Optional[str]:
        """2026-11-29T02:00:00.123Z"""
        if not isinstance(timestamp, int) or timestamp < 0:
            return None
        try:
            t = _EPOCH + timedelta(milliseconds=timestamp)
        except OverflowError:
            return None
        return t.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (t.microsecond // 1000)

    @staticmethod
    def parse8601(timestamp: Optional[str] = None) -> Optional[int]:
        """The reverse; None for what is no time."""
        try:
            return _epoch_ms(_moment(timestamp))
        except ValueError:
            return None

    fetchMarkets, loadMarkets, fetchOrderBook, fetchL2OrderBook = fetch_markets, load_markets, fetch_order_book, fetch_l2_order_book
    priceToPrecision, amountToPrecision, costToPrecision, marketId = price_to_precision, amount_to_precision, cost_to_precision, market_id
    fetchTicker, fetchTickers, fetchBalance, fetchStatus = fetch_ticker, fetch_tickers, fetch_balance, fetch_status

    def _ask(self, what: str, **params: Any) -> Dict[str, Any]:
        """An answer in ccxt's shape, which the gateway writes itself: unquoted numbers with the exchange's digits."""
        self._wait()
        a = self.gateway._door.get(_of(self.id, what), dict(params, format="ccxt"))
        if a.status != 200:
            raise _refusal(a)
        try:
            return _Doc(_floats(_parse(a.body, float), what)).fields
        except ValueError as err:
            raise _unreadable(a, err) from err

    def _accept(self, params: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
        """How old an answer may be. Without a word it is the gateway that says 5,000 ms, or less if this client's key has less.
        ccxt's options are anybody's, so only those are refused that look like this one."""
        _refuse_like(self.options, ("stale", "maxage"), ("accept_stale",), "options")
        ms = self._only(params, "accept_stale").get("accept_stale", self.options.get("accept_stale"))
        if ms is None or ms is False:
            return {}
        if not isinstance(ms, int) or isinstance(ms, bool) or ms < 0:
            raise InvalidParameter("accept_stale is a number of milliseconds, not %.40r" % (ms,), retryable=False)
        return {"accept_stale": ms}

    def _only(self, params: Optional[Mapping[str, Any]], *known: str) -> Mapping[str, Any]:
        """Refuses what would be ignored: a mistyped accept_stale must not mean its default."""
        for name in params or {}:
            if name not in known:
                raise UnknownParameter("params has no %r here. It may have: %s." % (name, ", ".join(known) or "nothing"), retryable=False)
        return params or {}

    def _wait(self) -> None:
        """Keeps rateLimit ms between the starts of requests, as ccxt's throttle does."""
        if not self.enableRateLimit:
            return
        with self._pace:
            now = time.monotonic()
            wait = self._next - now
            self._next = max(now, self._next) + self.rateLimit / 1000
        if wait > 0:
            time.sleep(wait)


def _refuse_like(given: Mapping[str, Any], parts: Tuple[str, ...], ours: Tuple[str, ...], where: str) -> None:
    """Refuses names that are nearly ours: what is mistyped must not mean its default."""
    for name in given:
        bare = str(name).replace("_", "").replace("-", "").lower()
        if name not in ours and any(part in bare for part in parts):
            raise UnknownParameter("%s has no %.40r here. Of the gateway's it may have: %s." % (where, name, ", ".join(ours)), retryable=False)


class binance(Exchange):
    """Binance spot behind the gateway."""
    id, name = "binance", "Binance"


class okx(Exchange):
    """OKX behind the gateway."""
    id, name = "okx", "OKX"


class coinbase(Exchange):
    """Coinbase behind the gateway."""
    id, name = "coinbase", "Coinbase Advanced"


def _epoch_ms(t: Optional[datetime]) -> Optional[int]:
    return None if t is None else (t - _EPOCH) // timedelta(milliseconds=1)


def _float(v: Optional[Decimal]) -> Optional[float]:
    return None if v is None else float(v)


def _ccxt_market(m: Market) -> Dict[str, Any]:
    none = {"min": None, "max": None}
    return {
        "id": m.exchange_symbol, "symbol": m.symbol, "base": m.base, "quote": m.quote, "settle": None, "baseId": m.base, "quoteId": m.quote,
        "settleId": None, "type": "spot", "spot": True, "margin": False, "swap": False, "future": False, "option": False, "contract": False,
        "linear": None, "inverse": None, "contractSize": None, "expiry": None, "expiryDatetime": None, "strike": None, "optionType": None,
        "active": m.active, "taker": None, "maker": None, "precision": {"amount": _float(m.lot), "price": _float(m.tick)},
        "limits": {
            "amount": {"min": _float(m.min_size), "max": None}, "price": dict(none), "cost": {"min": _float(m.min_notional), "max": None},
            "leverage": dict(none),
        },
        "created": None, "info": {"status": m.status, "alias_of": m.alias_of},
    }


_TICKER_NUMBERS = (
    "high", "low", "bid", "bidVolume", "ask", "askVolume", "vwap", "open", "close", "last", "previousClose", "change", "percentage",
    "average", "baseVolume", "quoteVolume",
)


def _floats(v: Any, what: str) -> Any:
    """Makes a float of each number that ccxt has as one: JSON says 10000 where it means 10000.0."""
    d = _Doc(v)
    if what == "orderbook":
        for side in ("bids", "asks"):
            d.fields[side] = [_float_level(level) for level in d.items(side)]
    elif what == "ticker":
        for name in _TICKER_NUMBERS:
            if d.fields.setdefault(name, None) is not None:
                d.fields[name] = _as_float(d.fields[name])
    else:
        for part, row in d.fields.items():
            if part != "info" and isinstance(row, dict):
                d.fields[part] = {k: _as_float(n) for k, n in row.items()}
    return d.fields


def _float_level(level: Any) -> List[float]:
    if not isinstance(level, list) or len(level) != 2:
        raise _Wrong("%.40r is no level" % (level,))
    return [_as_float(n) for n in level]


def _as_float(v: Any) -> float:
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        raise _Wrong("%.40r is no number" % (v,))
    try:
        return float(v)
    except OverflowError:
        raise _Wrong("%.40r is no number that a float can have" % (v,)) from None
