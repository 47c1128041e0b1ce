// Package regular opens files that have to be plain files. What else may lie at their path (a named pipe, a socket, a directory, a
// device) is refused at once: to open a pipe that nobody writes would wait for ever.
package regular

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrNot says that what lies at a path is no plain file.
var ErrNot = errors.New("is not a regular file: move it away")

// Open is os.OpenFile for plain files. It never waits.
func Open(path string, flag int, perm os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, perm) // which makes no difference to a plain file
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns a plain file, of one that is larger than most its first most+1 bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return io.ReadAll(io.LimitReader(f, most+1))
}
