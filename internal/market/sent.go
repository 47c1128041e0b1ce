package market

import "context"

type sentKey struct{}

// WithOnSend leaves onSend for the door to call when a request of the calls under ctx is about to be sent: Door.Admit
// calls Sending right before it returns nil for a request of OpBalances. Up to then the call waited for gates and budget
// and has seen nothing of the account; from then on its answer may be older than a caller that comes later.
//
// onSend runs on the goroutine that sends, once a request (pages, retries), so it must be quick and must not wait.
func WithOnSend(ctx context.Context, onSend func()) context.Context {
	return context.WithValue(ctx, sentKey{}, onSend)
}

// Sending calls what WithOnSend left in ctx, if anything.
func Sending(ctx context.Context) {
	if onSend, ok := ctx.Value(sentKey{}).(func()); ok {
		onSend()
	}
}
