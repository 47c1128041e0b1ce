// Package stream sends what the hub fans out to clients: over WebSocket with many subscriptions a connection, or as
// server-sent events of one book. It owns the connections: their bounds, their order of writes, and their end.
package stream
