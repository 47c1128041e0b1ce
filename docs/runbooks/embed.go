// Package runbooks holds what to do about each alert, one text per alert under the alert's name, so that the gateway can
// show them to the person on call without a repository at hand.
package runbooks

import "embed"

// FS holds the runbooks, NAME.md for the alert NAME.
//
//go:embed *.md
var FS embed.FS
