// Package gateway is the policy: who may answer which question, in which order, and when an old answer is allowed. It
// decides by data (see Policy) and knows no exchange by name, no HTTP, and no Redis.
//
// Books and Accounts are apart on purpose. Books only ever gets public ports and a store of books. Accounts has no store
// at all, so a stale balance cannot be written down.
package gateway
