// Package relay measures what one change of a book costs on its whole way: from the bytes of the exchange's connection
// through the adapter's stream, the local book and its journal to the frame that clients get. It holds benchmarks alone;
// package bench runs them.
package relay
