// Package exchange is the plumbing that the adapters of all exchanges share: the one door that every HTTP request
// passes, bounded bodies, host lists, the clock of an exchange, and a strict reader of JSON.
//
// It knows no exchange's dialect, classifies no answer (except that none came), retries nothing, and caches nothing.
package exchange
