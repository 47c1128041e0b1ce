// Package resilience stands between the gateway and the exchanges. Its Guard wraps every call of a port with, from
// outside to inside, the overall deadline, the retry loop, the gates, the wait for a rate budget, the gates again, the
// circuit's permit, and the attempt timeout; and it is the Door that every single HTTP request below passes.
//
// Circuits say "this kind of work fails at this exchange" and are found out by counting. Gates say "not before T, because
// K" and are told by the exchange. Budgets say "not so fast" and are known beforehand. The three never stand in for each
// other: a refusal for asking too often opens no circuit, an open circuit closes no gate, and a wait is no failure.
//
// An operator's isolation stands beside what circuits computed, and ends by itself. What there is to see of an exchange is
// kept within fixed bounds: five minutes of samples, the last attempts that went wrong, the worst hours of a day.
//
// Nothing here knows one exchange from another, keeps an answer, or reads a body. A circuit has no goroutine and no timer;
// reading its state never changes it.
package resilience
