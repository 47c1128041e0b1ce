package exchangesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Manifest lists recorded payloads to play. See the package documentation for its JSON.
type Manifest struct {
	Payloads []Payload `json:"payloads"`
	Captures []string  `json:"captures,omitempty"` // files, relative to the manifest

	dir string // files are relative to it
}

// Payload is one recorded answer.
type Payload struct {
	Venue    string `json:"venue"`
	File     string `json:"file"`              // relative to the manifest
	Line     int    `json:"line,omitempty"`    // of a .jsonl file, from 1
	Pointer  string `json:"pointer,omitempty"` // part of the document, RFC 6901
	Endpoint string `json:"endpoint"`          // path as the venue documents it, with {} for a part that varies
	Symbol   string `json:"symbol,omitempty"`  // the venue's own name; "" answers whatever is asked
	Base     string `json:"base,omitempty"`    // with Quote: lists the instrument
	Quote    string `json:"quote,omitempty"`
}

// maxManifest and maxPayload bound what is read: a full list of products is about 4 MB.
const (
	maxManifest = 1 << 20
	maxPayload  = 32 << 20
)

// ReadManifest reads a manifest, or makes one of a file that holds a [Capture]. The files that it names are read by [New].
func ReadManifest(path string) (*Manifest, error) {
	data, err := readFile(path, maxPayload)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	m := &Manifest{dir: filepath.Dir(path)}
	switch _, is, err := parseCapture(data); {
	case err != nil:
		return nil, fmt.Errorf("capture %s: %w", path, err)
	case is:
		m.Captures = []string{filepath.Base(path)}
		return m, nil
	case len(data) > maxManifest:
		return nil, fmt.Errorf("manifest %s: larger than %d bytes", path, maxManifest)
	}
	if err := decodeStrict(data, m); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", path, err)
	}
	if len(m.Payloads)+len(m.Captures) == 0 {
		return nil, fmt.Errorf("manifest %s: no payloads and no captures", path)
	}
	return m, nil
}

func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, most)
	}
	return os.ReadFile(path)
}

// decodeStrict reads one JSON document, refusing unknown fields and anything after it.
func decodeStrict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("more than one JSON document")
	}
	return nil
}

// read gives the bytes of a payload, checked to be JSON.
func (m *Manifest) read(p Payload) ([]byte, error) {
	data, err := readFile(filepath.Join(m.dir, filepath.FromSlash(p.File)), maxPayload)
	if err != nil {
		return nil, err
	}
	if p.Line > 0 {
		lines := bytes.Split(data, []byte("\n"))
		if p.Line > len(lines) {
			return nil, fmt.Errorf("no line %d", p.Line)
		}
		data = lines[p.Line-1]
	}
	data = bytes.TrimSpace(data)
	if p.Pointer != "" {
		if data, err = resolve(data, p.Pointer); err != nil {
			return nil, err
		}
	}
	if !json.Valid(data) {
		return nil, errors.New("not one JSON document")
	}
	return data, nil
}

// resolve follows an RFC 6901 pointer and gives the bytes that it points at.
func resolve(data []byte, pointer string) ([]byte, error) {
	steps := strings.Split(pointer, "/")
	if steps[0] != "" {
		return nil, fmt.Errorf("pointer %q does not start with /", pointer)
	}
	for _, step := range steps[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(list) {
				return nil, fmt.Errorf("pointer %q: no element %q", pointer, step)
			}
			data = list[i]
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return nil, fmt.Errorf("pointer %q: %w", pointer, err)
		}
		next, ok := fields[step]
		if !ok {
			return nil, fmt.Errorf("pointer %q: no field %q", pointer, step)
		}
		data = next
	}
	return bytes.TrimSpace(data), nil
}

// load reads all payloads of a manifest and lists their instruments.
func (s *Sim) load(m *Manifest) error {
	for i, p := range m.Payloads {
		v := s.Venue(p.Venue)
		if v == nil {
			return fmt.Errorf("payload %d: no venue %q", i+1, p.Venue)
		}
		ep := slices.IndexFunc(v.routes, func(e *endpoint) bool { return e.path == p.Endpoint })
		if ep < 0 {
			return fmt.Errorf("payload %d: %s has no endpoint %q", i+1, v.id, p.Endpoint)
		}
		data, err := m.read(p)
		if err != nil {
			return fmt.Errorf("payload %d: %s: %w", i+1, p.File, err)
		}
		if v.replay == nil {
			v.replay = &player{at: map[string]int{}, payloads: map[string][][]byte{}}
		}
		key := p.Endpoint + " " + p.Symbol
		v.replay.payloads[key] = append(v.replay.payloads[key], data)
		if p.Base == "" && p.Quote == "" {
			continue
		}
		if err := v.listRecorded(p, data, s.seed); err != nil {
			return fmt.Errorf("payload %d: %w", i+1, err)
		}
	}
	return s.loadCaptures(m)
}

// loadCaptures reads all captures of a manifest and lists their pairs.
func (s *Sim) loadCaptures(m *Manifest) error {
	for _, name := range m.Captures {
		data, err := readFile(filepath.Join(m.dir, filepath.FromSlash(name)), maxPayload)
		if err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		c, is, err := parseCapture(data)
		if err == nil && !is {
			err = errors.New("not a capture: it has no frames")
		}
		if err == nil {
			err = s.play(c)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// player serves recorded payloads.
type player struct {
	mu       sync.Mutex
	at       map[string]int // next payload by endpoint and symbol
	payloads map[string][][]byte
}

// answer gives the next payload for a call. A nil player has none.
func (p *player) answer(c *call) (answer, bool) {
	if p == nil {
		return answer{}, false
	}
	key := c.ep.path + " " + c.symbol
	list, ok := p.payloads[key]
	if !ok {
		key = c.ep.path + " "
		if list, ok = p.payloads[key]; !ok {
			return answer{}, false
		}
	}
	p.mu.Lock()
	i := min(p.at[key], len(list)-1)
	p.at[key] = i + 1
	p.mu.Unlock()
	data := list[i]
	if depth, ok := askedDepth(c); ok {
		data = trimLevels(data, depth)
	}
	a := jsonAnswer(200, nil)
	a.body = data
	return a, true
}
