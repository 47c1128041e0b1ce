// Package localbook holds one order book of an exchange as its stream changes it, and the journal of the raw frames that
// did so. It knows prices, sizes and how deep the exchange's word reaches; sequences, gaps and freshness are decided
// elsewhere. Nothing here locks, waits or asks the clock: a book and its journal belong to one goroutine at a time.
package localbook
