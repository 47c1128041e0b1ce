//go:build !unix

package fleet

import (
	"errors"
	"os"
)

// tryLock is not available here: the state directory then counts as unwritable rather than being written without a lock.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
