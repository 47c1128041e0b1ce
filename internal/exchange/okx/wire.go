package okx

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// envelope is the one shape of all answers, good or bad. Data is always an array, even of a single object; errors of the
// authentication leave it out. Other keys (inTime, outTime) are ignored.
type envelope[T any] struct {
	Code text `json:"code"`
	Msg  text `json:"msg"`
	Data *[]T `json:"data"`
}

// codeOK is the code of every good answer.
const codeOK = "0"

// codeNoInstrument is the code of an answer about an instrument that does not exist.
const codeNoInstrument = "51001"

// text is a JSON string. A bare number is read as its digits: a gateway of OKX has answered `"code":50011`
// (knowm/XChange#4114). Anything else is "", which OKX itself uses for "not applicable".
type text string

// UnmarshalJSON never fails on JSON.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch c := b[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = text(s)
	case c == '-' || c >= '0' && c <= '9':
		*t = text(b)
	}
	return nil
}

// latestMillis is a bound above which a time in milliseconds is no time: the year 5138. Microseconds lie beyond it.
const latestMillis = 100_000_000_000_000

// millis reads a time in milliseconds since 1970; false for "" and for what cannot be one.
func (t text) millis() (time.Time, bool) {
	n, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	return fromMillis(n)
}

func fromMillis(n int64) (time.Time, bool) {
	if n <= 0 || n > latestMillis {
		return time.Time{}, false
	}
	return time.UnixMilli(n).UTC(), true
}

// number reads an amount; false says that it cannot be read, without repeating it: what an account holds does not belong
// into logs.
func (t text) number() (market.Number, bool) {
	n, err := market.ParseNumber(string(t))
	return n, err == nil
}

var (
	errShape  = errors.New("the answer has not the documented shape")
	errNoData = errors.New("the answer has no data")
	errHTML   = errors.New("a page instead of an answer")
	errEmpty  = errors.New("an empty answer")
)

// decode reads the rows of a good answer and classifies every other.
func decode[T any](v *Venue, call market.Call, a *exchange.Response) ([]T, *market.Error) {
	var env envelope[T]
	err := json.Unmarshal(a.Body, &env)
	if refused := v.refused(call, a, string(env.Code), string(env.Msg)); refused != nil {
		return nil, refused
	}
	switch {
	case err != nil:
		return nil, v.malformed(call, a, shapeOf(err))
	case env.Data == nil:
		return nil, v.malformed(call, a, errNoData)
	}
	return *env.Data, nil
}

// one is decode for answers that hold exactly one row.
func one[T any](v *Venue, call market.Call, a *exchange.Response) (row T, _ *market.Error) {
	rows, err := decode[T](v, call, a)
	if err != nil {
		return row, err
	}
	if len(rows) != 1 {
		return row, v.malformed(call, a, fmt.Errorf("%w: %d rows instead of one", errNoData, len(rows)))
	}
	return rows[0], nil
}

// shapeOf says where JSON ended to be readable, without repeating any of it.
func shapeOf(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w: broken JSON at byte %d", errShape, e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%w: wrong type of %.60q", errShape, e.Field)
	}
	return errShape
}
