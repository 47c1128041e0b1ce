// Package notify tells people what changed, by a webhook that Slack and its likes understand: circuits that opened and
// closed again, bans, what operators did, what ended by itself, maintenance.
//
// It never holds up whoever tells it something, and it does not shout: messages are paced, what happens together is one
// message, a circuit that flaps is told about now and then. What cannot be delivered is given up and counted: the dashboard
// and the journal have it all, a message is only the hint to look there. The webhook's address is a secret, which no log
// line and no error of this package holds.
package notify
