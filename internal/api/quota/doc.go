// Package quota counts what each client of the gateway does and bounds it: requests a second, units of the exchanges' limits
// a minute, requests and streams at once. All keys of a client share its quota.
//
// A quota keeps one client from taking what all share. It is no substitute for the exchanges' own limits, which package
// resilience keeps to, whoever asks.
package quota
