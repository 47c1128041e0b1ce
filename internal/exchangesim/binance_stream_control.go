package exchangesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// binanceRequest is a control message.
type binanceRequest struct {
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
	ID     json.RawMessage   `json:"id"`
}

// binanceMethods are those of 2026, as the error text lists them.
var binanceMethods = []string{"SUBSCRIBE", "UNSUBSCRIBE", "LIST_SUBSCRIPTIONS", "SET_PROPERTY", "GET_PROPERTY"}

// text implements speaker.
func (bs *binanceStream) text(msg []byte) {
	var r binanceRequest
	switch err := json.Unmarshal(msg, &r); {
	case !json.Valid(msg):
		bs.flatError(3, "Invalid JSON: expected value at line 1 column 1", nil)
		return
	case err != nil:
		bs.refuse("Invalid request: wrong type of a field", nil)
		return
	}
	if !validBinanceID(r.ID) {
		bs.refuse("Invalid request: request ID must be an integer, a string of up to 36 letters and digits, or null", nil)
		return
	}
	switch r.Method {
	case "SUBSCRIBE":
		if len(msg) <= binanceMostBytes {
			bs.subscribeAll(r)
		}
	case "UNSUBSCRIBE":
		bs.unsubscribeAll(r)
	case "LIST_SUBSCRIPTIONS":
		bs.result(slices.Concat([]string{}, bs.names), r.ID)
	case "SET_PROPERTY", "GET_PROPERTY":
		bs.property(r)
	default:
		bs.refuse(fmt.Sprintf("Invalid request: unknown variant `%.40s`, expected one of `%s`", r.Method, strings.Join(binanceMethods, "`, `")), r.ID)
	}
}

// validBinanceID accepts an int64, a string of up to 36 letters and digits, null and nothing.
func validBinanceID(id json.RawMessage) bool {
	var n *int64
	if len(id) == 0 || json.Unmarshal(id, &n) == nil {
		return true
	}
	var s string
	return json.Unmarshal(id, &s) == nil && len(s) <= 36 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

var errNotNames = errors.New("params must be an array of strings")

func (r binanceRequest) names() ([]string, error) {
	out := make([]string, len(r.Params))
	for i, p := range r.Params {
		if len(p) == 0 || p[0] != '"' || json.Unmarshal(p, &out[i]) != nil {
			return nil, errNotNames
		}
	}
	if len(out) == 0 {
		return nil, errNotNames
	}
	return out, nil
}

// subscribeAll takes all streams of a message or none. Every second ack comes after the first data: clients must not wait for it.
func (bs *binanceStream) subscribeAll(r binanceRequest) {
	names, err := r.names()
	if err != nil {
		bs.refuse("Invalid request: "+err.Error(), r.ID)
		return
	}
	targets := make([]binanceTarget, len(names))
	fresh := map[string]struct{}{}
	for i, name := range names {
		t, ok := parseBinanceStream(name)
		if !ok || bs.s.refused(strings.ToUpper(t.symbol)) {
			bs.refuse("Invalid request: invalid stream", r.ID)
			return
		}
		targets[i] = t
		if !slices.Contains(bs.names, name) {
			fresh[name] = struct{}{}
		}
	}
	if len(bs.names)+len(fresh) > binanceStreams {
		bs.nestedError(4, "Too many subscriptions", r.ID)
		return
	}
	for i, name := range names {
		bs.subscribe(name, targets[i])
	}
	bs.acks++
	if id := slices.Clone(r.ID); bs.acks%2 == 0 {
		bs.s.after(binanceLateAck, func() { bs.result(nil, id) })
		return
	}
	bs.result(nil, r.ID)
}

func (bs *binanceStream) unsubscribeAll(r binanceRequest) {
	names, err := r.names()
	if err != nil {
		bs.refuse("Invalid request: "+err.Error(), r.ID)
		return
	}
	for _, name := range names {
		if bs.s.unsubscribed(name) {
			bs.s.unfollow(name)
			bs.names = slices.DeleteFunc(bs.names, func(n string) bool { return n == name })
		}
	}
	bs.result(nil, r.ID)
}

// property reads or sets the one property that there is.
func (bs *binanceStream) property(r binanceRequest) {
	var name string
	if len(r.Params) == 0 || json.Unmarshal(r.Params[0], &name) != nil {
		bs.refuse("Invalid request: property name must be a string", r.ID)
		return
	}
	if name != "combined" {
		bs.flatError(0, "Unknown property", r.ID)
		return
	}
	if r.Method == "GET_PROPERTY" {
		bs.result(bs.combined, r.ID)
		return
	}
	if len(r.Params) != 2 {
		bs.refuse("Invalid request: property name and value are needed", r.ID)
		return
	}
	var value *bool
	if json.Unmarshal(r.Params[1], &value) != nil || value == nil {
		bs.flatError(1, "Invalid value type: expected Boolean", r.ID)
		return
	}
	bs.combined = *value
	bs.result(nil, r.ID)
}

// result acks a request.
func (bs *binanceStream) result(value any, id json.RawMessage) {
	bs.s.say(jsonAnswer(http.StatusOK, struct {
		Result any             `json:"result"`
		ID     json.RawMessage `json:"id"`
	}{value, orNull(id)}).body)
}

func orNull(id json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(id)) == 0 {
		return json.RawMessage("null")
	}
	return id
}

type binanceStreamError struct {
	Code int             `json:"code"`
	Msg  string          `json:"msg"`
	ID   json.RawMessage `json:"id,omitempty"`
}

// refuse is error code 2.
func (bs *binanceStream) refuse(msg string, id json.RawMessage) { bs.nestedError(2, msg, id) }

// nestedError is the shape that codes 2 and 4 were seen in on the wire (ctubio/Krypto-trading-bot#1121,
// oliver-zehentleitner/unicorn-binance-websocket-api#17).
func (bs *binanceStream) nestedError(code int, msg string, id json.RawMessage) {
	bs.s.say(jsonAnswer(http.StatusOK, struct {
		Error binanceStreamError `json:"error"`
		ID    json.RawMessage    `json:"id"`
	}{binanceStreamError{Code: code, Msg: msg}, orNull(id)}).body)
}

// flatError is the shape that the documents show.
func (bs *binanceStream) flatError(code int, msg string, id json.RawMessage) {
	bs.s.say(jsonAnswer(http.StatusOK, binanceStreamError{code, msg, orNull(id)}).body)
}
