//go:build unix

package keys

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other programs that change a file of dir out until unlock, and waits for them. The lock is the directory's own,
// so nothing is left behind, also by a program that is killed.
func lock(dir string) (unlock func(), err error) { return flock(dir, syscall.LOCK_EX) }

// tryLock is lock, with errLocked instead of a wait.
func tryLock(dir string) (unlock func(), err error) {
	unlock, err = flock(dir, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return unlock, err
}

func flock(dir string, how int) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		_ = f.Close() // the lock's error is what matters
		return nil, err
	}
	return func() { _ = f.Close() }, nil // closing releases the lock; there is nothing to lose in a directory
}
