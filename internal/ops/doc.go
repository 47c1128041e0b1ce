// Package ops is what an operator sees and does: the overview of every circuit, the journal of what happened in the last
// 24 hours, and the few actions that a person on call needs.
//
// Looking changes nothing, however often it is done. An action is written down before it has any effect, by whom and why,
// and whatever it puts in force ends by itself.
package ops
