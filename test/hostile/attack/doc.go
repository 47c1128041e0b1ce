// Package attack is what a hostile client does, by the letter: it sends bytes as they are told, well formed or not, fast or
// one by one, on as many connections as are asked for, and reports how each connection ended. It knows nothing of what is
// right; the test that gives the orders does. It runs in a process of its own, so that neither its connections nor its
// memory are taken for the gateway's.
package attack
