// Package api is the HTTP face of the gateway: routes, parameters, client keys, JSON, problem documents, request limits,
// access log and request metrics. It turns a request into a question of package gateway and the answer into bytes.
//
// For operators it shows circuits and takes orders, on a listener of their own: who may act, and that no web page of
// somebody else's makes a browser do it, is decided here; what an order does is package ops's.
//
// It decides nothing about freshness or exchanges: who may answer, and how old, is gateway's. It never forwards what an
// exchange wrote: an error is told in our words, and an exchange's 401 or 429 about us is never the caller's. It keeps
// nothing between requests but counters and the addresses that wrong keys came from, so a balance cannot outlive its answer.
package api
