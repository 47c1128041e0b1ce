package fleet

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

const (
	lockFileName = "gates.lock"
	// lockRetry is how often a lock that another process holds is tried again. It holds it for one write of a small file.
	lockRetry = 2 * time.Millisecond
)

// locked runs fn while no other process writes into the directory, which it makes if need be. The kernel gives the lock
// back when its holder dies, so a kill leaves nothing locked.
func (f *GateFile) locked(ctx context.Context, fn func() error) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	l, err := os.OpenFile(filepath.Join(f.dir, lockFileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer l.Close() // nothing was written; closing gives the lock back
	for {
		held, err := tryLock(l)
		if err != nil {
			return &os.PathError{Op: "lock", Path: l.Name(), Err: err}
		}
		if held {
			return fn()
		}
		timer := time.NewTimer(lockRetry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
