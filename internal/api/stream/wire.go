package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// wireRequest is the JSON of a request. A field is nil that is missing, or null.
type wireRequest struct {
	ID       *string
	Op       *string
	Channel  *string
	Exchange *string
	Symbols  *[]string
	Depth    *int
	Key      *string
}

var fieldNames = []string{"id", "op", "channel", "exchange", "symbols", "depth", "key"}

// field is where the value of a name goes, nil for a name that does not exist.
func (w *wireRequest) field(name string) any {
	switch name {
	case "id":
		return &w.ID
	case "op":
		return &w.Op
	case "channel":
		return &w.Channel
	case "exchange":
		return &w.Exchange
	case "symbols":
		return &w.Symbols
	case "depth":
		return &w.Depth
	case "key":
		return &w.Key
	}
	return nil
}

var errNoObject = bad("", `The message is not a JSON object such as {"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":50}`)

// read fills w in from text, name by name: json.Unmarshal takes "Depth" for "depth", and of two the last. After a field at
// fault it reads on, so that the id is known; the first error counts.
func (w *wireRequest) read(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errNoObject
	}
	var wrong error
	seen := make(map[string]bool, len(fieldNames))
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return errNoObject
		}
		err = w.value(d, name, seen)
		if errors.Is(err, errNoObject) {
			return err // nothing behind it can be read
		}
		if wrong == nil {
			wrong = err
		}
	}
	if _, err := d.Token(); err != nil {
		return errNoObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("", "One message holds one JSON object")
	}
	return wrong
}

// value reads the value of one name.
func (w *wireRequest) value(d *json.Decoder, name string, seen map[string]bool) error {
	var wrong error
	into := w.field(name)
	switch {
	case into == nil:
		wrong = bad("", "There is no field "+strconv.Quote(clip(name)), fieldNames...)
	case seen[name]:
		wrong = bad(name, name+" is there twice")
	}
	if wrong != nil {
		into = new(json.RawMessage)
	} else {
		seen[name] = true
	}
	err := d.Decode(into)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return bad(name, name+" has the wrong type: it is "+clip(e.Value))
	}
	if err != nil {
		return errNoObject
	}
	return wrong
}
