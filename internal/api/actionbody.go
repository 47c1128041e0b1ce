package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxActionBody bounds the body of an action. The longest that makes sense has less than 1,500 bytes: a reason of 200
// characters and six short fields.
const maxActionBody = 16 << 10

// form is the body of an action: a JSON object whose values are all strings.
type form map[string]string

// readAhead reads the body of an action before the request takes a place among those of operators: one that trickles in
// keeps its own connection waiting, and nobody's order.
func readAhead(r *http.Request) {
	if r.ContentLength > maxActionBody {
		return // it is refused unread
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxActionBody+1))
	r.Body = io.NopCloser(&bodyAhead{bytes.NewReader(text), err})
}

// bodyAhead is what was read of a body, and what kept it from being read on.
type bodyAhead struct {
	text *bytes.Reader
	err  error
}

// Read implements io.Reader.
func (b *bodyAhead) Read(p []byte) (int, error) {
	if b.text.Len() == 0 && b.err != nil {
		return 0, b.err
	}
	return b.text.Read(p)
}

// readForm reads the body of an action strictly. The type of the content is needed: a page of another origin can make a
// browser send any body as text/plain, but not as JSON without asking first.
func readForm(r *http.Request, allowed []string) (form, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &requestError{code: CodeUnsupportedMediaType, detail: "The body of this route is JSON, and has to say so: Content-Type: application/json."}
	}
	if r.ContentLength > maxActionBody {
		return nil, errActionBody
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxActionBody+1))
	switch {
	case err != nil:
		return nil, &requestError{code: CodeInvalidParameter, detail: "The body broke off."}
	case len(text) > maxActionBody:
		return nil, errActionBody
	}
	return parseForm(text, allowed)
}

var errActionBody = &requestError{
	code: CodeBodyTooLarge, detail: fmt.Sprintf("The body has over %d bytes; no action needs as many.", maxActionBody),
}

// parseForm reads one JSON object. A field that the route does not have is refused and named, because a mistyped `class`
// must not mean every class; so is one that is given twice, or that is not text.
func parseForm(text []byte, allowed []string) (form, error) {
	if !utf8.Valid(text) {
		return nil, badForm("is not UTF-8", allowed)
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		e, ok := errors.AsType[*json.SyntaxError](err)
		if len(bytes.TrimSpace(text)) == 0 || !ok {
			return nil, badForm("is empty", allowed)
		}
		return nil, badForm(fmt.Sprintf("is not one JSON document: it goes wrong at byte %d", e.Offset), allowed)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, badForm("is not a JSON object", allowed)
	}
	f := make(form, len(allowed))
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, badForm("is not one JSON document", allowed) // it is: Unmarshal has read it
		}
		if err := f.field(name.(string), d, allowed); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// field reads the value of one field.
func (f form) field(name string, d *json.Decoder, allowed []string) error {
	if !slices.Contains(allowed, name) {
		return &requestError{
			code: CodeInvalidParameter, parameter: clip(name), allowed: allowed,
			detail: fmt.Sprintf("Unknown field %q. %s", clip(name), allowedFields(allowed)),
		}
	}
	if _, twice := f[name]; twice {
		return invalid(name, "is given more than once", nil)
	}
	value, err := d.Token()
	if err != nil {
		return badForm("is not one JSON document", allowed)
	}
	text, ok := value.(string)
	if !ok {
		return invalid(name, "is "+tokenName(value)+" and has to be a string", nil)
	}
	f[name] = text
	return nil
}

// tokenName names what stands in the place of a string.
func tokenName(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Delim:
		if t == '[' {
			return "an array"
		}
		return "an object"
	}
	return "a number"
}

func badForm(wrong string, allowed []string) error {
	return &requestError{
		code: CodeInvalidParameter, allowed: allowed,
		detail: "The body " + wrong + `. It is an object of strings, for example {"reason":"..."}. ` + allowedFields(allowed),
	}
}

func allowedFields(allowed []string) string { return "Fields: " + strings.Join(allowed, ", ") + "." }

// words reads text that people read later, in the audit and in messages: something that is not a space, and nothing that
// cannot be printed.
func (f form) words(name, what string, limit int) (string, error) {
	text := strings.TrimSpace(f[name])
	switch {
	case text == "":
		return "", invalid(name, "is required: "+what, nil)
	case utf8.RuneCountInString(text) > limit:
		return "", invalid(name, fmt.Sprintf("has %d characters; at most %d are allowed", utf8.RuneCountInString(text), limit), nil)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", invalid(name, "has a character that cannot be printed, such as a line break", nil)
	}
	return text, nil
}
