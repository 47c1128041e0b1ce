// Package night holds the acceptance tests of the whole gateway: the program's own wiring before simulated exchanges that
// fail as real ones do. Nights of half an hour run on a fake clock, without sockets; what needs sockets is run shortened.
// Each test counts what reached the exchanges, not only what callers were told. It holds only tests.
package night
