// Package fleet holds what gateways have to know of each other and of their own past: the ends of gates, so that neither
// a restart nor another replica sends a request during a ban; what operators put in force; and what happened in the last 24
// hours.
//
// A gate's end is written to a file in the state directory and, if there is one, to Redis. Both only move it forward.
// [Gates] does that. [Operations] keeps overrides in the same places, where the later word holds whatever copy of an
// earlier one turns up, and each instance's events.
//
// The package refuses to be a reason for failure: a directory that cannot be written and a Redis that does not answer are
// degraded, which [Gates.Degraded] and [Operations.Degraded] tell, and a file that cannot be read is kept aside and started
// anew.
package fleet
