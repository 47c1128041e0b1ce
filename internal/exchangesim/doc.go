// Package exchangesim simulates Binance spot, OKX and Coinbase: their REST interfaces (at Coinbase those of Advanced Trade and Exchange)
// and their streams of market data (at Coinbase that of Advanced Trade). It misbehaves on command. It is written from the venues' documents alone and shares no code with the adapters, so that a fact misread there does
// not hide here.
//
// A [Sim] holds three [Venue] values. A venue is a plain http.Handler. It is reached in four ways:
//
//   - [Venue.ServeHTTP]: inside any server;
//   - [Venue.Transport]: an http.RoundTripper without sockets and, streams apart, without goroutines, for testing/synctest bubbles;
//   - [Sim.StartPipe]: a real http.Server over in-memory connections, for bubbles in which connections and dials matter;
//   - [Sim.Start]: a listener on the loopback, with TLS if asked. A [Relay] in front of it can drop packets silently.
//
// Servers speak HTTP/1.1 only: a reset of one request is not a reset of a connection in HTTP/2. All clients of a venue are one IP.
//
// # Market
//
// Prices, sizes and sequences are functions of the seed and of time.Now; there is no state and no goroutine behind them, so a fake
// clock drives them and [Venue.Book] tells the truth of any moment. All arithmetic is on integers: ticks, lots and decimal strings.
// Every venue lists at least twelve pairs, among them a paused one, a delisted one, one with prices of some 10^-8, one thin and one
// with bids only. BTC books reach 5,000 levels a side.
//
// # Streams
//
// A stream (WebSocket) follows the clock of each subscribed pair and sends what changed since the step that it sent last, so that
// [Venue.BookBySeq] is the truth of every sequence on the wire, and a REST book has the sequence of the same step. A stream has two
// goroutines, which end with the connection, the server or the [Sim]; [Sim.Close] waits for them. At most 1,000 are open at a venue, a
// client's message has at most 64 KiB, 64 of them wait to be acted on, and a client that takes nothing for 10 s is cut. The venues'
// own limits on handshakes, messages and subscriptions hold with their documented consequences; [Config.Unlimited] lifts those on rates.
//
// Not simulated: private channels, candles, compression.
//
// # Faults
//
// [Venue.Inject] adds a [Fault]: a [FaultKind], where it applies (path prefix, class, symbol) and how often (the next N requests, a
// duration, a share of requests drawn from a seed). Faults are tried in the order in which they were added; those that change an
// answer add up, the first that ends the request wins. At most 1,000 are active per venue.
//
// Some faults are of streams alone: lost, doubled, swapped, cut and crossing messages, a symbol or a connection that falls silent, dead
// and closed connections, refused subscriptions, resets of a sequence. Where nothing narrows them, faults of the whole venue meet the
// handshakes of streams too; maintenance, unavailable, reset and close then also end the streams that are open when they begin, and hang
// silences them. One that is limited to a class of REST, to a symbol, a count or a share of requests leaves open streams alone, and
// class "stream" leaves requests alone.
//
// # Control endpoint
//
// [Sim.Control] is an http.Handler for a listener of its own. Bodies are JSON of at most 1 MiB, unknown fields are refused, durations
// are text such as "30s", moments are RFC 3339.
//
//	GET    /                        this list
//	GET    /v1/venues               venues with their symbols
//	GET    /v1/stats                dials, requests, streams and counts of every venue: by path, class, credential, status, fault
//	GET    /v1/stats/{venue}        the same for one; ?log=1 adds the last requests with their times
//	POST   /v1/stats/reset          set all counts to zero
//	GET    /v1/faults               active faults with their ids
//	POST   /v1/faults/{venue}       add one fault: {"kind":"hang","class":"market_data","for":"30s"}; answers {"id":1}
//	DELETE /v1/faults               remove all; /v1/faults/{venue} those of one venue; /v1/faults/{venue}/{id} one
//	POST   /v1/schedule             start a schedule: {"steps":[{"after":"10s","venue":"okx","for":"30s","fault":{"kind":"maintenance"}}],"every":"2m"}
//	DELETE /v1/schedule             stop all schedules and remove their faults
//	GET    /v1/book/{venue}         the true book: ?symbol=&depth=&at=&seq=
//	GET    /v1/relays               relays with their state, dials and open connections
//	POST   /v1/relays/{venue}       {"action":"drop"|"hang"|"heal"|"reset"}
//
// A step of a schedule holds either a fault or a relay action ("relay":"drop"); a step with "for" undoes itself afterwards. "every"
// repeats the schedule with that period until it is stopped.
//
// # Replay
//
// A [Manifest] lists recorded payloads. Each is served byte for byte at its endpoint for its symbol, and cut to the asked depth by
// leaving out whole levels. Several payloads of one endpoint and symbol are played in order, one per request; the last one stays. The
// instrument of a payload is added to the venue's listing, or takes the place of the one with that symbol.
//
//	{"payloads":[{"venue":"okx","file":"books.jsonl","line":1,"endpoint":"/api/v5/market/books","symbol":"BTC-USDT","base":"BTC","quote":"USDT"}]}
//
// "file" is relative to the manifest, "line" picks a line of a .jsonl (from 1), "pointer" a part of the document (RFC 6901). A payload
// without a symbol is the endpoint's answer whatever is asked. A book whose symbol the recording does not tell is listed under a
// made-up one.
//
// A [Capture], a stretch of one book's stream with the book before it, is played too: alone in the place of a manifest, or named in its
// "captures". Its pair is listed, its base is the book of REST and of a first snapshot, and from half a second after the first
// subscription the frames follow at their recorded pace, byte for byte but for the numbers that Coinbase counts per connection. What is
// subscribed later joins where the recording is. Frames that the base holds already are left out. [Venue.Book] gives the book of each
// moment; that of the last frame stays.
//
// The package places no orders and keeps nothing on disk.
package exchangesim
