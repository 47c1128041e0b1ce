package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"exchange-gateway/internal/regular"
)

// maxFile bounds the file. A key takes about 200 bytes, so this is some five thousand of them.
const maxFile = 1 << 20

var errNoPlace = errors.New("there is no place for client keys: set state_dir or keys_file")

// File is what a keys file holds.
type File struct {
	Keys    []Key    // in their order
	Clients []Client // those with settings, by name
}

// fileForm is the file as YAML.
type fileForm struct {
	Keys    []keyForm              `yaml:"keys"`
	Clients map[string]*clientForm `yaml:"clients,omitempty"`
}

type keyForm struct {
	ID      string   `yaml:"id"`
	Hash    string   `yaml:"hash"`
	Client  string   `yaml:"client,omitempty"`
	Scopes  []string `yaml:"scopes"`
	Note    string   `yaml:"note,omitempty"`
	Created string   `yaml:"created,omitempty"`
	Expires string   `yaml:"expires,omitempty"`
}

// Parse reads a keys file as it is at a time. Unknown fields are errors with line and column; every other problem names the
// key by its place and id, or the client. An empty file holds no keys.
func Parse(text []byte, now time.Time) (*File, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(tooMany(f.Keys, now)...); err != nil {
		return nil, err
	}
	return f, nil
}

// parse is Parse without a look at how many keys a client has.
func parse(text []byte) (*File, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("over %d bytes", maxFile)
	}
	form, err := decode(text)
	if err != nil {
		return nil, err
	}
	f := &File{Keys: make([]Key, 0, len(form.Keys))}
	seen := make(map[string]bool, len(form.Keys))
	var problems []error
	for i := range form.Keys {
		k, err := form.Keys[i].key()
		if err == nil && seen[k.ID] {
			err = errors.New("id is used twice")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("keys[%d] (id %q): %w", i, shownID(form.Keys[i].ID), err))
			continue
		}
		seen[k.ID] = true
		f.Keys = append(f.Keys, k)
	}
	if len(form.Clients) > maxClients {
		problems = append(problems, fmt.Errorf("clients has more than %d names", maxClients))
	} else {
		problems = append(problems, f.takeClients(form.Clients)...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return f, nil
}

// shownID is an id for an error: "" if it may be a key or its secret.
func shownID(id string) string {
	if !validID(id) || len(id) > 2*idLength {
		return ""
	}
	return id
}

func (f *File) takeClients(forms map[string]*clientForm) (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		c, err := forms[name].client(name)
		if err != nil {
			if ValidClient(name) != nil {
				name = "" // it may be a key: do not show it
			}
			problems = append(problems, fmt.Errorf("clients %q: %w", name, err))
			continue
		}
		f.Clients = append(f.Clients, c)
	}
	return problems
}

// tooMany are the clients that have more valid keys than they may.
func tooMany(all []Key, now time.Time) (problems []error) {
	valid := make(map[string]int)
	for i := range all {
		if !all[i].Expired(now) {
			valid[all[i].Client]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(valid)) {
		if n := valid[name]; n > maxValid {
			problems = append(problems, fmt.Errorf("client %s has %d valid keys (%s), and at most %d are possible: revoke one, with "+
				"gateway key revoke ID", name, n, strings.Join(validOf(all, name, now), ", "), maxValid))
		}
	}
	return problems
}

// validOf are the ids of a client's valid keys.
func validOf(all []Key, client string, now time.Time) (ids []string) {
	for i := range all {
		if all[i].Client == client && !all[i].Expired(now) {
			ids = append(ids, shownID(all[i].ID))
		}
	}
	return ids
}

// decode reads YAML strictly. A running gateway reads this file, and goccy/go-yaml v1.19.2 panics on some broken ones (a
// list that is only a tag), so a panic of it is an error like any other.
func decode(text []byte) (form fileForm, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("not valid YAML: the parser gave up on it")
		}
	}()
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with it
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := d.Decode(&form); err != nil && !errors.Is(err, io.EOF) {
		return fileForm{}, shown(err)
	}
	if err := d.Decode(&fileForm{}); !errors.Is(err, io.EOF) {
		return fileForm{}, errors.New("a second document begins: put all keys into one, without ---")
	}
	return form, nil
}

// fieldShape is what a name of a field may look like, however it is misspelt. No key or hash looks like it.
var fieldShape = regexp.MustCompile(`^[^"]*("[a-z]{1,16}"[^"]*)?$`)

// shown is an error of the parser with its line and column, but without what it quotes of the file, unless that is the
// name of a field: somebody may have pasted a whole key.
func shown(err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil {
		return errors.New("not valid YAML")
	}
	message, _, _ := strings.Cut(e.GetMessage(), "\n")
	if !fieldShape.MatchString(message) {
		message, _, _ = strings.Cut(message, `"`)
	}
	at := e.GetToken().Position
	return fmt.Errorf("[%d:%d] %s", at.Line, at.Column, strings.TrimSpace(message))
}

func (f *keyForm) key() (Key, error) {
	if !validID(f.ID) {
		return Key{}, fmt.Errorf("id is not %d to %d letters and digits", minID, maxID)
	}
	hash, err := parseHash(f.Hash)
	if err != nil {
		return Key{}, err
	}
	scopes, err := ParseScopes(f.Scopes...)
	if err != nil {
		return Key{}, err
	}
	if scopes.IsZero() {
		return Key{}, errors.New("scopes are missing")
	}
	if err := validNote(f.Note); err != nil {
		return Key{}, err
	}
	k := Key{ID: f.ID, Scopes: scopes, Note: f.Note, Client: f.Client, hash: hash}
	if f.Client == "" {
		k.Client, err = f.ID, notTaken(f.ID)
	} else {
		err = ValidClient(f.Client)
	}
	if err != nil {
		return Key{}, err
	}
	if k.Created, err = moment("created", f.Created); err != nil {
		return Key{}, err
	}
	if k.Expires, err = moment("expires", f.Expires); err != nil {
		return Key{}, err
	}
	return k, nil
}

func moment(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is not an RFC 3339 time, such as 2027-01-31T00:00:00Z", field)
	}
	return t, nil
}

func form(k *Key) keyForm {
	f := keyForm{ID: k.ID, Hash: k.Hash(), Scopes: k.Scopes.Strings(), Note: k.Note}
	if k.Client != k.ID {
		f.Client = k.Client
	}
	if !k.Created.IsZero() {
		f.Created = k.Created.Format(time.RFC3339)
	}
	if !k.Expires.IsZero() {
		f.Expires = k.Expires.Format(time.RFC3339)
	}
	return f
}

// Load reads a keys file as it is at a time. A file that does not exist holds no keys.
func Load(path string, now time.Time) (*File, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(text, now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	text, err := regular.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// encode is the whole file in our own layout.
func (f *File) encode() ([]byte, error) {
	whole := fileForm{Keys: make([]keyForm, 0, len(f.Keys))}
	for i := range f.Keys {
		whole.Keys = append(whole.Keys, form(&f.Keys[i]))
	}
	if len(f.Clients) > 0 {
		whole.Clients = make(map[string]*clientForm, len(f.Clients))
		for i := range f.Clients {
			whole.Clients[f.Clients[i].Name] = formOfClient(&f.Clients[i])
		}
	}
	return yaml.MarshalWithOptions(whole, yaml.IndentSequence(true))
}
