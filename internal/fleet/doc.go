// Package fleet holds what gateways have to know of each other and of their own past: the ends of gates, so that neither
// a restart nor another replica sends a request during a ban.
//
// A gate's end is written to a file in the state directory and, if there is one, to Redis. Both only move it forward. It
// refuses to be a reason for failure: a directory that cannot be written and a Redis that does not answer are degraded,
// which [Gates.Degraded] tells, and a file that cannot be read is kept aside and started anew.
package fleet
