package config

import (
	"fmt"
	"slices"
)

// problems collects what is wrong with a configuration.
type problems struct {
	given  map[string]string // each setting that a source gave, and where, as a message begins: "gateway.yaml: [3:5] "
	errs   []error
	wrong  map[string]bool // settings and groups that errs is about
	unread map[string]bool // those of them that have no value, "" for all
}

func newProblems() problems {
	return problems{given: map[string]string{}, wrong: map[string]bool{}, unread: map[string]bool{}}
}

// err is all of it, nil if nothing is wrong.
func (p *problems) err() error {
	if len(p.errs) == 0 {
		return nil
	}
	return &InvalidError{errs: p.errs, wrong: p.wrong}
}

// unreadable adds a problem because of which the setting or group at path has no value; "" because of which none may have its own.
func (p *problems) unreadable(path string, err error) {
	p.errs = append(p.errs, err)
	p.wrong[path], p.unread[path] = true, true
}

// when adds a problem of the setting name, with the place that gave it. What is said of one that could not be read is no use.
func (p *problems) when(wrong bool, name, format string, args ...any) {
	if !wrong || within(p.unread, name) {
		return
	}
	p.errs = append(p.errs, fmt.Errorf("%s%s %s", p.given[name], name, fmt.Sprintf(format, args...)))
	if p.wrong != nil {
		p.wrong[name] = true
	}
}

// mistaken tells whether one of the settings, or one below it, is wrong already: another is not compared with it.
func (p *problems) mistaken(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return within(p.wrong, path) })
}
