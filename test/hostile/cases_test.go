package hostile_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/test/hostile/attack"
)

// hostility is something that a client does, and how it has to end.
type hostility struct {
	attack.Script
	statuses []int    // what each answer's status may be; empty: no answer comes
	answers  int      // how many come; 0: as many as there are, and there may be none
	codes    []string // what each answer's code may be, all being problems; empty: none is a problem of ours
	ends     []string // how the connection may end
	close    int      // code of the close frame, 0: none
	errors   int      // error messages of the stream, at least
}

// How connections end that are closed: whether the last of what was sent had been read decides between the two.
var (
	closes = []string{attack.EndClosed, attack.EndReset}
	either = []string{attack.EndClosed, attack.EndReset, attack.EndOpen}
)

// once is one write and as many answers.
func once(name, send string) attack.Script {
	return attack.Script{
		Name:  strconv.QuoteToASCII(name[:min(len(name), 100)] + " " + strconv.Itoa(len(send))),
		Steps: []attack.Step{{Send: []byte(send)}}, Wait: time.Second,
	}
}

// get is a request of a path, with more header lines.
func get(path string, lines ...string) string {
	return request("GET", path, lines...)
}

func request(method, path string, lines ...string) string {
	return method + " " + path + " HTTP/1.1\r\n" + strings.Join(append([]string{"Host: localhost"}, lines...),
		"\r\n") + "\r\n\r\n"
}

// refused is a request that our code refuses with a problem, and keeps the connection.
func refused(name, send string, status int, code string) hostility {
	return hostility{Script: once(name, send), statuses: []int{status}, answers: 1, codes: []string{code}, ends: either}
}

// cut is a request that is refused before it is one, and the connection with it.
func cut(name, send string, statuses ...int) hostility {
	s := once(name, send)
	s.Wait = 0
	return hostility{Script: s, statuses: statuses, answers: 1, ends: closes}
}

// plays lets the second process do all of it at once and judges each connection.
func (s *stage) plays(t *testing.T, target string, within time.Duration, all []hostility) {
	t.Helper()
	s.begin(t, target, all).judge(t, within)
}

// going is hostility that goes on.
type going struct {
	all []hostility
	a   *attacker
}

func (s *stage) begin(t *testing.T, target string, all []hostility) going {
	t.Helper()
	var scripts []attack.Script
	for _, h := range all {
		if slices.ContainsFunc(scripts, func(s attack.Script) bool { return s.Name == h.Name }) {
			t.Fatalf("two scripts are called %q", h.Name)
		}
		scripts = append(scripts, h.Script)
	}
	return going{all, attacks(t, attack.Order{Target: target, Scripts: scripts})}
}

// judge waits for the end of all connections and compares.
func (g going) judge(t *testing.T, within time.Duration) {
	t.Helper()
	outcomes := g.a.report(within).Outcomes
	for _, h := range g.all {
		n := 0
		for _, o := range outcomes {
			if o.Name != h.Name {
				continue
			}
			n++
			if wrong := h.wrong(&o); wrong != "" {
				t.Errorf("%s: %s\n%+v", h.Name, wrong, clip(o))
				break // the others went wrong in the same way
			}
		}
		if n == 0 || n > max(1, h.Conns) {
			t.Errorf("%s: %d outcomes of %d connections", h.Name, n, max(1, h.Conns))
		}
	}
}

// clip shortens an outcome for a person.
func clip(o attack.Outcome) attack.Outcome {
	o.Statuses = o.Statuses[:min(len(o.Statuses), 5)]
	o.Codes = o.Codes[:min(len(o.Codes), 5)]
	return o
}

// wrong says what is not as it has to be.
func (h *hostility) wrong(o *attack.Outcome) string {
	switch {
	case o.Leak:
		return "an answer shows what only the admin listener does"
	case !slices.Contains(h.ends, o.End):
		return fmt.Sprintf("the connection ended %q, want one of %v", o.End, h.ends)
	case h.answers > 0 && len(o.Statuses) != h.answers:
		return fmt.Sprintf("%d answers, want %d", len(o.Statuses), h.answers)
	case o.Close != h.close:
		return fmt.Sprintf("closed with %d, want %d", o.Close, h.close)
	case o.Errors < h.errors:
		return fmt.Sprintf("%d error messages, want %d", o.Errors, h.errors)
	case len(h.codes) > 0 && len(o.Codes) != len(o.Statuses):
		return "no problem document"
	}
	for _, status := range o.Statuses {
		if !slices.Contains(h.statuses, status) {
			return fmt.Sprintf("status %d, want one of %v", status, h.statuses)
		}
	}
	for _, code := range o.Codes {
		if !slices.Contains(h.codes, code) {
			return fmt.Sprintf("problem %q, want one of %v", code, h.codes)
		}
	}
	return ""
}
