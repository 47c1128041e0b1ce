package keys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exchange-gateway/internal/clock"
)

// edit changes f to what the file is to hold, and the text to say so with everything else as people wrote it.
type edit func(text lines, f *File) (lines, error)

// Append adds a key to a file, which is made if it does not exist. A third valid key of a client is refused, and so is one of
// a client that is only the id of another key.
func Append(path string, k Key) error { return change(path, adding(k)) }

func adding(k Key) edit {
	return func(text lines, f *File) (lines, error) {
		if ids := validOf(f.Keys, k.Client, clock.WallNow()); len(ids) >= maxValid {
			return nil, fmt.Errorf("client %s has %d valid keys already (%s), as many as it can have: revoke the one that is not used "+
				"any more, with gateway key revoke ID", k.Client, len(ids), strings.Join(ids, ", "))
		}
		if err := lonely(f.Keys, &k); err != nil {
			return nil, err
		}
		item, err := itemLines(&k)
		if err != nil {
			return nil, err
		}
		f.Keys = append(f.Keys, k)
		return text.withItem(item), nil
	}
}

// lonely refuses a key whose client is the id of another key, one that was made without a client: whoever holds that one was
// told that its quota is its own, and has not been asked.
func lonely(all []Key, k *Key) error {
	for i := range all {
		if o := &all[i]; o.Client == k.Client && o.ID == k.Client && o.ID != k.ID {
			return fmt.Errorf("%s is the id of a key that has no client, and the new one would use up its quota: give the new key a client of "+
				"another name; if it is to replace that one, revoke that then, with gateway key revoke %s", shownID(o.ID), shownID(o.ID))
		}
	}
	return nil
}

// Revoke takes the key with an id out of a file and returns it. Gateways that read the file refuse it within 2 s, and close
// the streams that it opened within 10 s. It works also on a file that is refused because a client has too many keys.
func Revoke(path, id string) (Key, error) {
	var gone Key
	err := change(path, revoking(id, &gone))
	return gone, err
}

func revoking(id string, gone *Key) edit {
	return func(text lines, f *File) (lines, error) {
		i := slices.IndexFunc(f.Keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			if shownID(id) == "" {
				return nil, errors.New("what was given is no id of a key and no key, and is not repeated, for it may be a secret: gateway key list shows the ids")
			}
			return nil, fmt.Errorf("there is no key with the id %q: gateway key list shows them", shownID(id))
		}
		*gone = f.Keys[i]
		f.Keys = slices.Delete(f.Keys, i, i+1)
		return text.withoutItem(i), nil
	}
}

// IDOf is the id in a key's text, for whoever has found a key and revokes it; also in that of a part of one, such as a log may
// have cut off. Any other text is returned as it is.
func IDOf(text string) string {
	if rest, ok := strings.CutPrefix(text, prefix); ok {
		if id, _, _ := strings.Cut(rest, "_"); validID(id) {
			return id
		}
	}
	return text
}

// SetClient changes the settings of a client in a file, which is made if it does not exist, and returns them. A setting that
// is 0 afterwards is left out of the file, and the default holds; so is a client without settings.
func SetClient(path, name string, set func(*Client)) (Client, error) {
	if err := ValidClient(name); err != nil {
		return Client{}, err
	}
	c := Client{Name: name}
	err := change(path, setting(&c, set))
	return c, err
}

// setting leaves what comes of it in c, which has the name.
func setting(c *Client, set func(*Client)) edit {
	return func(text lines, f *File) (lines, error) {
		name := c.Name
		i, found := slices.BinarySearchFunc(f.Clients, name, func(c Client, name string) int { return strings.Compare(c.Name, name) })
		if found {
			*c = f.Clients[i]
		}
		set(c)
		c.Name = name
		if err := c.Validate(); err != nil {
			return nil, err
		}
		if found {
			f.Clients = slices.Delete(f.Clients, i, i+1)
		}
		if *c == (Client{Name: name}) {
			return text.withoutClient(name), nil
		}
		f.Clients = slices.Insert(f.Clients, i, *c)
		return text.withClient(c), nil
	}
}

// change rewrites a file. It is replaced as a whole and readable by its owner alone, and two programs that change it at once
// both succeed.
func change(path string, e edit) error {
	if path == "" {
		return errNoPlace
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unlock, err := lock(dir)
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	defer unlock()
	old, err := read(path)
	if err != nil {
		return err
	}
	text, err := edited(old, e)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replace(path, text)
}

// edited is what a file holds after a change. Text that does not hold what it should then, for it is laid out in a way of its
// own, gives way to the same in our layout.
func edited(old []byte, e edit) ([]byte, error) {
	f, err := parse(old)
	if err != nil {
		return nil, err
	}
	next, err := e(linesOf(old), f)
	if err != nil {
		return nil, err
	}
	text := next.bytes()
	if after, err := parse(text); err == nil && after.same(f) {
		return text, nil
	}
	if text, err = f.encode(); err != nil {
		return nil, err
	}
	_, err = parse(text) // an id that is taken, or one key too many for the size of a file
	return text, err
}

func (f *File) same(g *File) bool {
	return slices.EqualFunc(f.Keys, g.Keys, func(a, b Key) bool { return a.ID == b.ID && sameKey(&a, &b) }) &&
		slices.Equal(f.Clients, g.Clients)
}

// replace writes beside the file and renames, so that a reader sees the old file or the new one.
func replace(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
