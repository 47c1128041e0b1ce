package fleet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"exchange-gateway/internal/regular"
)

// lockRetry is how often a lock that another process holds is tried again. It holds it for one write of a small file.
const lockRetry = 2 * time.Millisecond

// directory is a state directory: small files, each replaced as a whole, under locks that several processes share.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

// locked runs fn while no other process holds the lock of that name in the directory, which it makes if need be. The
// kernel gives the lock back when its holder dies, so a kill leaves nothing locked.
func (d directory) locked(ctx context.Context, lock string, fn func() error) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	l, err := regular.Open(d.path(lock), os.O_RDWR|os.O_CREATE, 0o600)
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
		if !pause(ctx, lockRetry) {
			return context.Cause(ctx)
		}
	}
}

// replace writes a file anew: a new one beside it, on the disk before it takes the name, and the name on the disk before
// we say that it is there. A lock is held, so a fixed name suffices and a kill leaves one file behind at most.
func (d directory) replace(name string, text []byte) (err error) {
	temp := d.path(name + ".tmp")
	w, err := regular.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err == nil {
		err = w.Sync()
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp, d.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return d.sync()
}

// sync puts the names of the directory on the disk.
func (d directory) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	return f.Sync()
}

// read returns a file, of one that is larger than most the first most+1 bytes. No file is no text.
func (d directory) read(name string, most int64) ([]byte, error) {
	text, err := regular.Read(d.path(name), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if text == nil && err == nil {
		text = []byte{} // an empty file is not the same as none
	}
	return text, err
}

// setAside renames a file that is none of ours. One is kept: the last.
func (d directory) setAside(name string) (aside string, err error) {
	aside = d.path(name + ".unreadable")
	return aside, os.Rename(d.path(name), aside)
}

// stamp is a file as it was when it was read or written: whether somebody replaced it since costs one look at the
// directory.
type stamp struct{ info os.FileInfo }

// look returns the file's stamp as it is now, zero without one.
func (d directory) look(name string) stamp {
	info, err := os.Stat(d.path(name))
	if err != nil {
		return stamp{}
	}
	return stamp{info}
}

func (s stamp) same(now stamp) bool {
	if s.info == nil || now.info == nil {
		return s.info == now.info
	}
	return os.SameFile(s.info, now.info) && s.info.ModTime().Equal(now.info.ModTime()) && s.info.Size() == now.info.Size()
}
