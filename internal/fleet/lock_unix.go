//go:build unix

package fleet

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock unless another holds it. The lock belongs to this opening of the file, not to the process, so
// it excludes another store in the same process too.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // a file descriptor fits an int
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}
