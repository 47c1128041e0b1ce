// Package app builds the gateway from its configuration and runs it: the one place where the parts meet. It decides
// nothing that a part could decide.
package app
