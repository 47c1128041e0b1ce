// Package keys holds the keys by which clients of the gateway prove who they are: their text, their scopes, the file in
// which only their hashes are kept, and the ring that checks a presented key.
//
// A key's secret exists twice: in the moment in which it is made, and with its owner. Nothing here can print one.
package keys
