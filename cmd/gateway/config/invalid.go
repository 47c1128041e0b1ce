package config

import (
	"errors"
	"strings"
)

// InvalidError is everything that reading and checking the sources found wrong, a line each.
type InvalidError struct {
	errs  []error
	wrong map[string]bool // the settings that are wrong, and groups of them; "" for all
}

func (e *InvalidError) Error() string { return errors.Join(e.errs...).Error() }

// Unwrap returns the problems.
func (e *InvalidError) Unwrap() []error { return e.errs }

// Wrong tells whether what Load returned says already that one of the settings, or one below it, is wrong. Their values are not
// what was meant, so what depends on them cannot be checked: a mistake in one line must not be told as another mistake elsewhere.
func Wrong(loaded error, paths ...string) bool {
	e, ok := errors.AsType[*InvalidError](loaded)
	if !ok {
		return loaded != nil
	}
	for _, path := range paths {
		if within(e.wrong, path) {
			return true
		}
	}
	return false
}

// within tells whether one of the settings is path, is below it, or is a group that holds it.
func within(settings map[string]bool, path string) bool {
	if settings[""] {
		return true
	}
	for s := range settings {
		if s == path || strings.HasPrefix(s, path+".") || strings.HasPrefix(path, s+".") {
			return true
		}
	}
	return false
}
