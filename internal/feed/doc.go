// Package feed keeps local order books from the exchanges' streams and vouches for them. It opens as few connections as
// the exchanges' limits allow, replaces them before they are cut, starts a book anew the moment that it may be wrong, and
// says of every book whether the exchange still vouches for it. It knows no exchange by name: an adapter's StreamConn holds
// each exchange's own procedure. What it holds is shown through View; it sends nothing to anybody.
package feed
