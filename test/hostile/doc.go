// Package hostile tests the gateway, as it is shipped, against clients that mean harm or know no better: requests that are
// too large, too slow, malformed or absurd, frames that are no WebSocket, ten thousand idle connections, thousands of wrong
// keys, and one client that asks ten times as often as it may. They come from a process of their own. Each has to end in a
// clear refusal or a close; meanwhile another client is served as if nobody else were there; afterwards what they took is
// given back. Everything is on loopback and bounded in number and time. It holds only tests.
package hostile
