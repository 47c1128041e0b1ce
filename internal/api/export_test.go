package api

import (
	"context"
	"time"
)

// AppendTime and AppendQuoted are tested against the standard library's own.
var (
	AppendTime   = appendTime
	AppendQuoted = appendQuoted
)

// Within is the context of a request, and what ends it.
func Within(ctx context.Context, at time.Time) (context.Context, func()) {
	d := within(ctx, at)
	return d, d.end
}
