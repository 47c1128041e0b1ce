package market

import "log/slog"

const redacted = "[redacted]"

// Secret is text that cannot be printed, logged or encoded by accident. Only Reveal returns it.
//
// The text lies behind a pointer: package fmt does not ask the methods of a Secret in an unexported field, nor those of
// one printed with %d, and would show the text of a plain field.
type Secret struct{ text *string }

// NewSecret wraps text. No text is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text: for signing and for nothing else.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero tells whether there is no text.
func (s Secret) IsZero() bool { return s.text == nil }

// String hides the text.
func (s Secret) String() string { return redacted }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return redacted }

// MarshalText hides the text from every encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText reads the text from configuration.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = NewSecret(string(b))
	return nil
}

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Credential is one API key of one exchange account. Which fields are needed depends on the exchange and on the shape
// of the key; the adapter says so.
type Credential struct {
	Key        Secret
	Secret     Secret // a shared secret or a private key in PEM or base64
	Passphrase Secret
	Demo       bool // the key belongs to the exchange's demo environment
}
