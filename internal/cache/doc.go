// Package cache holds what the gateway knows last of order books and of the lists of pairs, so that both can be answered
// through an outage with their true age: in memory, in Redis, and as the layered [Store] that uses both.
//
// It refuses three things. A balance cannot be kept: no function takes one. A clock is never moved: a copy keeps the
// exchange's own times and its age through memory, Redis, another replica and a restart, and a copy whose age cannot be
// known is not kept at all. And Redis never decides whether an answer is given: while it is down, slow, full, read-only
// or holds rubbish, the store is degraded, which [Store.Degraded] tells, and nothing waits for it longer than 50 ms.
package cache
