//go:build unix

package regular_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"exchange-gateway/internal/regular"
)

// TestOpen_refusesWhatIsNoFile at once, however it is opened.
func TestOpen_refusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("directory"), 0o700), os.Symlink(at("loop"), at("loop"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{at("fifo"), at("directory"), at("socket"), at("loop"), os.DevNull} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_APPEND} {
			if f, err := regular.Open(path, flag, 0o600); err == nil {
				f.Close()
				t.Errorf("%s was opened", path)
			}
		}
		if text, err := regular.Read(path, 10); err == nil {
			t.Errorf("%s was read: %q", path, text)
		}
	}
}

func TestRead_isBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	if text, err := regular.Read(path, 10); err != nil || len(text) != 11 || string(text[:3]) != "abc" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := regular.Read(path+"-not", 10); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
