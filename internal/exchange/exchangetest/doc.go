// Package exchangetest is the contract that every exchange's adapter passes, offline and in plain `go test`.
//
// It asks an adapter every question of [market.Venue] while it plays the network and the gates itself, and holds the
// adapter to what the layers above rely on: each request passes the door exactly once and costs what the plan says; a
// refusal of the door sends nothing; trouble of every sort becomes the right kind and never a panic, a hang or a good
// answer; clocks are honest; what was returned never changes; errors give no secret away; no goroutine is left behind.
//
// It knows no exchange. What is particular to one (its good answers, its error bodies) is in the [Subject]. A new
// adapter is done when [Run] passes and its own tests cover the error table of its exchange.
package exchangetest
