package market

import (
	"strings"
	"unicode"
)

// TurnsText tells whether a character only changes the direction in which its neighbours are read: with it a line can be made
// to read as another one.
func TurnsText(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// Straight is a text without such characters.
func Straight(s string) string {
	if strings.IndexFunc(s, TurnsText) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if TurnsText(r) {
			return -1
		}
		return r
	}, s)
}
