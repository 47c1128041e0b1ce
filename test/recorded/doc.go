// Package recorded plays the recorded streams of the exchanges, from a socket, through the real adapters and the real feed,
// and compares the books with those that the recordings' own notes expect. It shares no code with what it tests: it reads
// messages and keeps books in a way of its own. It holds only tests.
package recorded
