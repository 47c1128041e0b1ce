// Package exchangesim simulates the REST interfaces of Binance spot, OKX and Coinbase (Advanced Trade and Exchange) and misbehaves
// on command. It is written from the venues' documents alone and shares no code with the adapters, so that a fact misread there does
// not hide here.
//
// A [Sim] holds three [Venue] values. A venue is a plain http.Handler. It is reached in four ways:
//
//   - [Venue.ServeHTTP]: inside any server;
//   - [Venue.Transport]: an http.RoundTripper without sockets and without goroutines, for testing/synctest bubbles;
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
// # Faults
//
// [Venue.Inject] adds a [Fault]: a [FaultKind], where it applies (path prefix, class, symbol) and how often (the next N requests, a
// duration, a share of requests drawn from a seed). Faults are tried in the order in which they were added; those that change an
// answer add up, the first that ends the request wins. At most 1,000 are active per venue.
//
// # Control endpoint
//
// [Sim.Control] is an http.Handler for a listener of its own. Bodies are JSON of at most 1 MiB, unknown fields are refused, durations
// are text such as "30s", moments are RFC 3339.
//
//	GET    /                        this list
//	GET    /v1/venues               venues with their symbols
//	GET    /v1/stats                dials, requests and counts of every venue: by path, class, credential, status, fault
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
// The package places no orders, has no streams, and keeps nothing on disk.
package exchangesim
