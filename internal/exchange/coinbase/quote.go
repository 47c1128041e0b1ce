package coinbase

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuote bounds what an error repeats of the exchange's own words, in bytes.
const maxQuote = 200

// plainText is a body that is not JSON, if it is a line of text.
func plainText(b []byte) string {
	if len(b) > maxQuote || !utf8.Valid(b) || strings.ContainsFunc(string(b), func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return string(b)
}

// quote repeats words of an answer to a keyless request, but not those that look like an address, a key or an id: long
// ones, and those with digits and the punctuation of addresses.
func quote(s string) string {
	var out strings.Builder
	for w := range strings.FieldsSeq(strings.ToValidUTF8(s, "?")) {
		if len(w) > 24 || strings.ContainsFunc(w, unicode.IsDigit) && (len(w) >= 16 || strings.ContainsAny(w, ".:@/")) {
			w = "[redacted]"
		}
		if out.Len()+1+len(w) > maxQuote {
			break
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		for _, r := range w {
			if unicode.IsPrint(r) {
				out.WriteRune(r)
			}
		}
	}
	return out.String()
}

// knownText repeats an answer to a signed request only if it is one that we know word for word.
func knownText(s string) string {
	switch s {
	case "request timestamp expired", "Invalid API Key", "invalid signature", "invalid passphrase", "Invalid Passphrase",
		"Missing required scopes", "Unauthorized", "NotFound", "Private rate limit exceeded", "Too many requests",
		"User-Agent header is required.", "request timeout":
		return s
	}
	return "its text is withheld, as the request was signed"
}

// word is s if it is an error code: letters and underscores, at most 40. Ids and keys have digits.
func word(s string) string {
	return only(s, func(r rune) bool { return r == '_' || letter(r) })
}

// ray is s if it is the id that the CDN gives a request, "8e2f6a7b9c0d1e2f-FRA": its support asks for it.
func ray(s string) string {
	return only(s, func(r rune) bool { return r == '-' || letter(r) || r >= '0' && r <= '9' })
}

func letter(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }

func only(s string, ok func(rune) bool) string {
	if len(s) > 40 || strings.ContainsFunc(s, func(r rune) bool { return !ok(r) }) {
		return ""
	}
	return s
}
