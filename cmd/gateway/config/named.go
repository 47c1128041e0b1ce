package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds a configuration or secret file.
const maxFile = 1 << 20

// Warning is something that works and will not in the next release.
type Warning struct {
	Setting string // exchanges.okx.accounts.main.key_file
	Used    string // the file that is used
	Instead string // the file that will be used in the next release
}

func (w Warning) String() string {
	return fmt.Sprintf("%s: %s was found in the working directory, not beside the configuration file. "+
		"The next release looks beside the configuration file alone: move it to %s, or write its whole path", w.Setting, w.Used, w.Instead)
}

// namesFile tells whether the value of a setting is the name of a file or a directory.
func namesFile(path string) bool {
	return strings.HasSuffix(path, "_file") || path == "state_dir"
}

// beside is where a file is that the configuration file calls name: relative to the configuration file, so that it does not
// matter where the program is started. One that is only in the working directory is used, for a release, with a warning: names
// were relative to that.
func (r *fileReader) beside(path, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	at := filepath.Join(filepath.Dir(r.file), name)
	if exists(at) || !exists(name) {
		return at
	}
	if r.warn != nil {
		r.warn(Warning{Setting: path, Used: absolute(name), Instead: absolute(at)})
	}
	return name
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// absolute is for people; a working directory that is gone is no reason to stop.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("%s is over %d bytes", path, maxFile)
	}
	return text, err
}

// Text reads the text of a secret from a file, without the space around it. An editor's encoding is refused by name: as a part
// of the secret it would be refused by the exchange, and nobody would see why.
func Text(path string) (string, error) {
	text, err := readBounded(path)
	if err != nil {
		return "", err
	}
	if err := encoding(text); err != nil {
		return "", fmt.Errorf("%s %w", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// PEM tells why a file is not read as PEM where an editor's encoding is the reason, and nil otherwise.
func PEM(path string) error {
	text, err := readBounded(path)
	if err != nil {
		return nil // who reads it says so
	}
	if err := encoding(text); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return nil
}

// The ways in which an editor on Windows saves a text. Of UTF-16 one byte of two is zero for every letter that occurs in a key.
var (
	errBOM    = errors.New("begins with a byte order mark: save it as UTF-8 without one (in an editor \"UTF-8\", not \"UTF-8 with BOM\")")
	errUTF16  = errors.New("is UTF-16: save it as UTF-8 (in an editor \"UTF-8\", not \"Unicode\"; in PowerShell -Encoding ascii)")
	errBinary = errors.New("is no text: it holds zero bytes")
)

// encoding refuses text that is not plain UTF-8.
func encoding(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return errBOM
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")),
		len(text) > 1 && (text[0] == 0) != (text[1] == 0):
		return errUTF16
	case bytes.IndexByte(text, 0) >= 0:
		return errBinary
	}
	return nil
}
