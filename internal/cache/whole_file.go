package cache

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// A packed list is a gzip file of the exchange's bytes, which zcat reads. Its comment says what it is: "exchange-gateway list",
// the number of this format, the exchange, and when the exchange vouched for it, in nanoseconds since 1970. What does not begin
// so is not ours. The checksum of gzip finds what was cut or mixed up.
const (
	wholeMagic  = "exchange-gateway list "
	wholeFormat = 1
)

func pack(l *whole) ([]byte, error) {
	if !spellable(l.confirmed) {
		return nil, errUnencodable
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	z.Comment = fmt.Sprintf("%s%d %s %d", wholeMagic, wholeFormat, l.exchange, clock.Wall(l.confirmed).UnixNano())
	if _, err = z.Write(l.body); err == nil {
		err = z.Close()
	}
	if err == nil && b.Len() > maxPacked {
		err = fmt.Errorf("%w: %d bytes compressed", errUnencodable, b.Len())
	}
	return b.Bytes(), err
}

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, ErrRubbish
	}
	z.Multistream(false)
	body, err := io.ReadAll(io.LimitReader(z, maxWhole+1))
	if err != nil || len(body) > maxWhole {
		return nil, ErrRubbish
	}
	return body, nil
}

// decodeWhole reads a packed list and checks it to the end. What is not one of this exchange is ErrRubbish.
func decodeWhole(packed []byte, exchange market.ExchangeID) (*whole, error) {
	confirmed, err := readComment(packed, exchange)
	if err != nil {
		return nil, err
	}
	if _, err := unpack(packed); err != nil {
		return nil, err
	}
	return &whole{exchange: exchange, packed: packed, confirmed: confirmed}, nil
}

// readComment tells what a packed list says of itself.
func readComment(packed []byte, exchange market.ExchangeID) (confirmed time.Time, err error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return confirmed, ErrRubbish
	}
	fields := strings.Fields(strings.TrimPrefix(z.Comment, wholeMagic))
	if !strings.HasPrefix(z.Comment, wholeMagic) || len(fields) < 1 {
		return confirmed, ErrRubbish
	}
	if n, err := strconv.Atoi(fields[0]); err == nil && n > wholeFormat {
		return confirmed, ErrNewerFormat
	}
	if len(fields) != 3 || fields[0] != strconv.Itoa(wholeFormat) || fields[1] != string(exchange) {
		return confirmed, ErrRubbish
	}
	nanos, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || nanos <= 0 {
		return confirmed, ErrRubbish
	}
	return time.Unix(0, nanos).UTC(), nil
}

// wholePath is the file of an exchange's list.
func wholePath(dir string, exchange market.ExchangeID) string {
	return filepath.Join(dir, "listings-"+string(exchange)+".json.gz")
}

var errNotAFile = errors.New("it is no file")

// readWholeFile reads the file of a list; ErrMiss without one. What lies there may be anything: a directory, or a pipe that
// nobody writes to, is not waited for, and no more is read than a list can have.
func readWholeFile(dir string, exchange market.ExchangeID) ([]byte, error) {
	f, err := os.OpenFile(wholePath(dir, exchange), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMiss
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &os.PathError{Op: "read", Path: f.Name(), Err: errNotAFile}
	case info.Size() > maxPacked:
		return nil, &os.PathError{Op: "read", Path: f.Name(), Err: ErrRubbish}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPacked+1))
	if err == nil && len(text) > maxPacked {
		err = &os.PathError{Op: "read", Path: f.Name(), Err: ErrRubbish}
	}
	return text, err
}

// writeWholeFile puts a list in the place of an older one, as a whole. What is there and is not ours, or was written by a newer
// gateway, is left alone, which is the error; a younger list of another process stays.
func writeWholeFile(dir string, l *whole) error {
	path := wholePath(dir, l.exchange)
	there, err := readWholeFile(dir, l.exchange)
	switch {
	case errors.Is(err, ErrMiss):
	case err != nil:
		return err
	default:
		at, err := readComment(there, l.exchange)
		if err != nil {
			return &os.PathError{Op: "replace", Path: path, Err: err}
		}
		if _, broken := unpack(there); broken == nil && at.After(clock.Wall(l.confirmed)) && !at.After(clock.WallNow().Add(time.Second)) {
			return nil
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return replaceFile(path, l.packed)
}

// replaceFile writes a file beside the one that it takes the name of, on the disk before it does.
func replaceFile(path string, text []byte) error {
	sweepTemporary(path)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// sweepTemporary removes what a process left that was killed while it wrote. Nobody writes for an hour.
func sweepTemporary(path string) {
	left, _ := filepath.Glob(path + ".*.tmp") // the pattern is ours
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && clock.WallNow().Sub(info.ModTime()) > time.Hour {
			_ = os.Remove(name) // the next one tries again
		}
	}
}
