// Package e2e tests the programs as an operator has them: cmd/gateway and cmd/exchangesim built once, run as processes on
// the loopback, asked over HTTP, killed, stopped, and judged by their answers, their logs and what the simulated
// exchanges counted. Time is real here, so each test says how little of it is enough; what takes hours is tested under
// fake time elsewhere. No test needs a network.
package e2e
