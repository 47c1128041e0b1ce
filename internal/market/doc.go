// Package market holds the words of the gateway: exchanges, pairs, exact numbers, order books, balances, the ports
// that every exchange implements, and the one closed error Kind that every layer above reads.
//
// It is the bottom of the house. It imports nothing of ours, does no I/O, starts no goroutine, and keeps no state.
package market
