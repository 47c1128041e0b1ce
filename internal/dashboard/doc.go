// Package dashboard is the page for the person on call: the state of every exchange in words, what clients get, and the
// few actions. It holds no state and decides nothing: the page reads the event stream of the API and acts through its
// admin routes, so whatever can be seen or done here can be seen and done without it.
//
// Everything that the page needs is embedded: ES modules as they were written, one chart library, no build step. A strict
// Content-Security-Policy keeps it so: no inline script, no inline style, no request to anywhere else. Where no script
// runs, and for curl, the same overview is rendered on the server.
package dashboard
