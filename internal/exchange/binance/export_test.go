package binance

// DecodeBook is for benchmarks.
var DecodeBook = decodeBook
