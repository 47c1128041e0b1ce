// Package gobinance holds the gateway's facade in Binance's dialect against a public Go library for Binance, go-binance, with
// only its base URL changed. It is a module of its own: the gateway itself needs no client of an exchange.
package gobinance
