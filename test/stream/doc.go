// Package stream holds the acceptance tests of the market-data feed: the program's own wiring between simulated exchanges
// and clients of its WebSocket, on a fake clock and without sockets. Every message that a client gets is checked against the
// simulator's truth at the sequence, or the time, that the message states. It holds only tests.
package stream
