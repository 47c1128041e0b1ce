package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDays bounds a time from now in days: a century.
const maxDays = 36_500

// expiry reads when a key ends, "" for never: so many days or a duration from now, a date (its first moment, UTC), or an
// RFC 3339 time.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := moment(text, now)
	if err != nil {
		return time.Time{}, err
	}
	at = at.UTC().Truncate(time.Second)
	if !at.After(now) {
		return time.Time{}, fmt.Errorf("%s is over already: %w", at.Format(time.RFC3339), errNotLater)
	}
	return at, nil
}

var errNotLater = errors.New("it must be later than now")

func after(now time.Time, d time.Duration) (time.Time, error) {
	if d <= 0 {
		return time.Time{}, errNotLater
	}
	return now.Add(d), nil
}

func moment(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n <= maxDays {
			return after(now, time.Duration(max(n, 0))*24*time.Hour)
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return after(now, d)
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("write 90d, 12h, a date such as 2027-01-31, or an RFC 3339 time")
}
