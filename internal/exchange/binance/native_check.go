package binance

import (
	"errors"
	"net/url"

	"exchange-gateway/internal/exchange"
)

// Answers are passed on as they came, so they are read only as far as to know that they are whole and what was asked for: a
// body that was cut, a page, or the answer to another question must not reach a caller as an answer.

var errOtherShape = errors.New("the answer has another shape")

// checkTickers takes the object of one symbol, which must be the one that was asked about, or an array of objects.
func checkTickers(body []byte, q url.Values) error {
	if !q.Has("symbol") {
		return checkRows('{')(body, q)
	}
	name, found := q.Get("symbol"), false
	err := wholeObject(body, func(c *exchange.Cursor, key string) error {
		if key != "symbol" {
			return c.Skip()
		}
		got, err := c.Text()
		if err == nil && string(got) != name {
			err = errOtherSymbol
		}
		found = true
		return err
	})
	if err == nil && !found {
		err = errMissing
	}
	return err
}

// checkInfo takes an object with an array of symbols. One without any is the answer to a filter that none passes.
func checkInfo(body []byte, _ url.Values) error {
	found := false
	err := wholeObject(body, func(c *exchange.Cursor, key string) error {
		if key != "symbols" {
			return c.Skip()
		}
		found = true
		return rowsOf(c, '{')
	})
	if err == nil && !found {
		err = errMissing
	}
	return err
}

// checkAverage takes {"mins":5,"price":"9.35751834","closeTime":1694061154503}.
func checkAverage(body []byte, _ url.Values) error {
	found := false
	err := wholeObject(body, func(c *exchange.Cursor, key string) error {
		if key == "price" {
			found = true
		}
		return c.Skip()
	})
	if err == nil && !found {
		err = errMissing
	}
	return err
}

// checkRows takes an array, empty or of rows that begin alike.
func checkRows(first byte) func([]byte, url.Values) error {
	return func(body []byte, _ url.Values) error {
		c := exchange.NewCursor(body)
		if err := rowsOf(c, first); err != nil {
			return err
		}
		return c.End()
	}
}

func rowsOf(c *exchange.Cursor, first byte) error {
	return c.Array(func(int) error {
		if c.Next() != first {
			return errOtherShape
		}
		return c.Skip()
	})
}

// wholeObject reads an object and nothing after it; field must read each value.
func wholeObject(body []byte, field func(c *exchange.Cursor, key string) error) error {
	c := exchange.NewCursor(body)
	if err := c.Object(func(key []byte) error { return field(c, string(key)) }); err != nil {
		return err
	}
	return c.End()
}
