//go:build unix

package keys

import (
	"os"
	"syscall"
)

// lock keeps other programs that append to a file of dir out until unlock. The lock is the directory's own, so nothing
// is left behind, also by a program that is killed.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close() // the lock's error is what matters
		return nil, err
	}
	return func() { _ = f.Close() }, nil // closing releases the lock; there is nothing to lose in a directory
}
