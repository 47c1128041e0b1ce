// Package quickstart follows the README's first commands to the letter, in an empty folder with a fresh clone, as somebody does
// who has never seen the gateway: within five minutes there has to be a stale book that says what it is. It holds only tests.
package quickstart
