package okx

import (
	"strings"

	"exchange-gateway/internal/market"
)

// meaning is what a code of OKX means to us. Its note is ours: OKX's own text changes, can be Chinese, and can hold our
// address.
type meaning struct {
	kind market.Kind
	note string
	// ofOwner marks what OKX says about the owner of a key, not about the place that we ask from.
	ofOwner bool
	vague   bool // the note says so little that OKX's own words help
}

// meaningOf looks a code up in the table of OKX's documents; false for a code that is not in it. Most of those of trading and
// funding are left out: no read can meet them, and one that did would not be about a parameter of ours. Sub-codes like
// "51004_1101" have the meaning of what is in front of the underscore.
func meaningOf(code string) (meaning, bool) {
	code, _, _ = strings.Cut(code, "_")
	switch code {
	case "1", "2": // results of bulk writes
		return meaning{kind: market.KindUnavailable, note: "operation failed"}, true
	case "50000", "50002", "50006":
		return meaning{kind: market.KindInvalid, note: "empty body, bad JSON or content type"}, true
	case "50001":
		return meaning{kind: market.KindMaintenance, note: "service closed for maintenance"}, true
	case "50004": // sent with HTTP 400, though nothing is wrong with the request
		return meaning{kind: market.KindTimeout, note: "the endpoint timed out inside the exchange"}, true
	case "50005":
		return meaning{kind: market.KindMaintenance, note: "endpoint inactive, retired if this goes on"}, true
	case "50011", "50040", "50061":
		return meaning{kind: market.KindRateLimited, note: "too many requests"}, true
	case "50013": // sent with HTTP 429, though it is no limit (ccxt/ccxt#9612)
		return meaning{kind: market.KindUnavailable, note: "systems are busy"}, true
	case "50014", "50015", "50016", "50024", "50025", "50042":
		return meaning{kind: market.KindInvalid, note: "parameters missing, in conflict, too many or repeated"}, true
	case "50026":
		return meaning{kind: market.KindUnavailable, note: "system error"}, true
	case "50046", "50062":
		return meaning{kind: market.KindMaintenance, note: "feature temporarily unavailable"}, true
	case "50115":
		return meaning{kind: market.KindInvalid, note: "wrong method"}, true
	case "51000":
		return meaning{kind: market.KindInvalid, note: "parameter error"}, true
	case codeNoInstrument:
		return meaning{kind: market.KindUnknownSymbol, note: "no such instrument"}, true
	case "51012":
		return meaning{kind: market.KindDelisted, note: "the token was delisted"}, true
	}
	if m, ok := placeMeaning(code); ok {
		return m, true
	}
	return keyMeaning(code)
}

// placeMeaning holds the codes of geography and compliance.
func placeMeaning(code string) (meaning, bool) {
	switch code {
	case "50051":
		return meaning{kind: market.KindRestricted, note: "not served in this country or region"}, true
	case "50121": // its text holds our address
		return meaning{kind: market.KindRestricted, note: "not served at our address"}, true
	case "50052", "50059", "50060":
		return meaning{kind: market.KindRestricted, note: "compliance or identity checks are not passed", ofOwner: true}, true
	}
	return meaning{}, false
}

// keyMeaning holds the codes about a credential.
func keyMeaning(code string) (meaning, bool) {
	note := ""
	switch code {
	case "50007", "50008", "50009", "50012", "50027", "50029":
		note = "the user is blocked, frozen or under risk control"
	case "50030", "50041", "50120":
		note = "the key lacks the permission: Read is needed"
	case "50035":
		note = "the endpoint wants a key that is bound to addresses"
	case "50038", "50053", "50101":
		note = "the key belongs to the other environment: say whether it is a demo key"
	case "50100":
		note = "the API of this user is frozen"
	case "50102", "50112":
		return meaning{kind: market.KindClockSkew, note: "the time of the request was refused"}, true
	case "50103", "50104", "50106", "50107":
		note = "a header of the signature is missing"
	case "50105":
		note = "wrong passphrase"
	case "50108", "50109", "50111", "50114":
		note = "the key is not accepted"
	case "50110": // its text holds our address
		note = "our address is not on the key's list"
	case "50113":
		note = "wrong signature"
	case "50119":
		note = noteOtherRegion
	default:
		return meaning{}, false
	}
	return meaning{kind: market.KindAuth, note: note}, true
}

// noteOtherRegion gets the name of our region behind it: a key of another region looks like a wrong key.
const noteOtherRegion = "the key does not exist here: a wrong key, or one of another region than "

// maxCode bounds a code: "51004_1101" has 10 characters.
const maxCode = 16

// safeCode is a code that may stand in an error and a log line; "" for anything that does not look like one.
func safeCode(code string) string {
	if len(code) > maxCode {
		return ""
	}
	for i := range len(code) {
		if c := code[i]; c != '_' && c != '-' && (c < '0' || c > '9') {
			return ""
		}
	}
	return code
}
