package keys

// What a change makes of the text of a file.

// TextWith is a file with a key more.
func TextWith(text []byte, k Key) ([]byte, error) { return edited(text, adding(k)) }

// TextWithout is a file with a key less.
func TextWithout(text []byte, id string) ([]byte, error) { return edited(text, revoking(id, new(Key))) }

// TextSet is a file with the settings of a client changed.
func TextSet(text []byte, name string, set func(*Client)) ([]byte, error) {
	return edited(text, setting(&Client{Name: name}, set))
}
