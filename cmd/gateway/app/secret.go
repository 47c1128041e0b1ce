package app

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"exchange-gateway/internal/regular"
)

const (
	secretFile = "session.key"
	secretSize = 32
)

// sessionSecret signs the cookies of operators who are signed in. It is kept in the state directory, so that they stay
// signed in when the gateway restarts; where it cannot be kept they sign in again.
func sessionSecret(dir string, log *slog.Logger) (secret []byte, kept bool) {
	fresh := make([]byte, secretSize)
	_, _ = rand.Read(fresh) // it never fails: see crypto/rand
	if dir == "" {
		return fresh, false
	}
	secret, err := keptSecret(filepath.Join(dir, secretFile), fresh)
	if err != nil {
		log.Warn("the secret of sign-ins is not kept: operators sign in again after a restart", slog.Any("err", err))
		return fresh, false
	}
	return secret, true
}

// keptSecret reads the file, or makes it with fresh. Two gateways that start at once on one directory end with the same:
// the file is linked into its place whole, and only one of them can be first.
func keptSecret(path string, fresh []byte) ([]byte, error) {
	kept, err := regular.Read(path, secretSize)
	switch {
	case err == nil && len(kept) == secretSize:
		return kept, nil
	case err == nil:
		return nil, errors.New(path + " is not a secret that the gateway wrote: remove it")
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), secretFile+".*") // 0600
	if err != nil {
		return nil, err
	}
	_, err = f.Write(fresh)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	if err := errors.Join(err, os.Remove(f.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return regular.Read(path, secretSize)
}
