// Package hub fans the streamed books out to downstream clients. A topic is what can be subscribed to: a book cut to a
// depth, or the top of one. Each message of a topic is encoded once and shared by all who get it; a client that does not
// keep up gets a fresh snapshot in place of what it missed, and one that reads nothing is told to go. It never makes the
// feed wait, opens no connection, starts no goroutine, and keeps no history.
//
// Locks are taken in this order: the feed's own (held during every call of Listener and inside Inspect), a book's, a
// client's. The hub's own lock guards three maps and is held while no other is taken. The feed is never called with a lock of
// the hub held, but for that which keeps two Withholds apart and comes before all others.
package hub
