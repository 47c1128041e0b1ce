package market

// Optional is a number that an exchange may leave out: null, "" or a missing field mean absent, never zero.
type Optional struct {
	n  Number
	ok bool
}

// Some is a present number.
func Some(n Number) Optional { return Optional{n: n, ok: true} }

// Get returns the number and whether there is one.
func (o Optional) Get() (Number, bool) { return o.n, o.ok }

// IsZero tells whether the number is absent, for `omitzero`.
func (o Optional) IsZero() bool { return !o.ok }

// MarshalJSON writes a JSON string, or null when absent.
func (o Optional) MarshalJSON() ([]byte, error) {
	if !o.ok {
		return []byte("null"), nil
	}
	return o.n.MarshalJSON()
}

// UnmarshalJSON reads a number; null and "" are absent.
func (o *Optional) UnmarshalJSON(b []byte) error {
	if s := string(b); s == "null" || s == `""` {
		*o = Optional{}
		return nil
	}
	if err := o.n.UnmarshalJSON(b); err != nil {
		return err
	}
	o.ok = true
	return nil
}
