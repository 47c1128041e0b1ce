package ops

import (
	"fmt"
	"slices"
)

// headline is the worst of all exchanges, in words, and the others that are not well by their state.
func headline(views []view) (Level, string) {
	level, silent, heard, troubled := LevelOK, 0, 0, 0
	var worst *view
	for i := range views {
		v := &views[i]
		if v.silent() {
			silent++
		} else if !v.dead() {
			heard++ // it answers, or nobody knows better
		}
		if severity(v.level) >= severity(LevelDegraded) {
			troubled++
		}
		if worst == nil || rank(v) > rank(worst) {
			worst = v
		}
		level = worse(level, v.level)
	}
	level = better(level, LevelDegraded) // until none of them answers
	switch {
	case worst == nil:
		return LevelOK, "No exchange is enabled."
	case level == LevelOK:
		return LevelOK, calm(views)
	}
	text := string(worst.id) + ": " + stopped(sentences(worst.why, worst.clients, worst.nextText())) + others(views, worst)
	switch {
	case silent > 0 && heard == 0:
		level = LevelDown
		if len(views) > 1 {
			text = "No exchange answers. " + text
		}
	case troubled > 1:
		text = fmt.Sprintf("%d of %d exchanges are in trouble. ", troubled, len(views)) + text
	}
	return level, text
}

// silent tells that clients who ask for an exchange get nothing live of it.
func (v *view) silent() bool {
	return v.harm() == harmRefused || !v.unasked() && v.dead() && v.streaming() == 0
}

// calm is the headline while all is well: who answers, and whom nobody asks.
func calm(views []view) string {
	var unasked []string
	for i := range views {
		if v := &views[i]; v.unasked() {
			unasked = append(unasked, string(v.id))
		}
	}
	answering := len(views) - len(unasked)
	switch {
	case answering == 0:
		return "Nobody asks: no client has asked for anything in the last 10 min."
	case len(views) == 1:
		return fmt.Sprintf("All is well: %s answers.", views[0].id)
	case len(unasked) == 0:
		return fmt.Sprintf("All is well: %d exchanges answer.", answering)
	}
	verb := "are"
	if len(unasked) == 1 {
		verb = "is"
	}
	for i := range views {
		if v := &views[i]; answering == 1 && !v.unasked() {
			return fmt.Sprintf("All is well: %s answers; %s %s not asked.", v.id, joined(unasked), verb)
		}
	}
	return fmt.Sprintf("All is well: %d exchanges answer; %s %s not asked.", answering, joined(unasked), verb)
}

// others names every exchange but the worst that is not plain well, the worst of them first: " Also coinbase is isolated."
func others(views []view, worst *view) string {
	var left []*view
	for i := range views {
		if v := &views[i]; v != worst && v.level != LevelOK {
			left = append(left, v)
		}
	}
	if len(left) == 0 {
		return ""
	}
	slices.SortStableFunc(left, func(a, b *view) int { return rank(b) - rank(a) })
	said := make([]string, len(left))
	for i, v := range left {
		said[i] = v.brief()
	}
	return " Also " + joined(said) + "."
}

// brief is the exchange's state in a few words: "coinbase is isolated", "BTC/USDT of okx is withheld".
func (v *view) brief() string {
	if o := v.withholding(); o != nil && o.Pair.IsZero() {
		return string(v.id) + " is withheld"
	}
	switch v.state {
	case StateBanned:
		return string(v.id) + " is banned"
	case StateIsolated:
		return target(v.id, v.isolation().Class) + " is isolated"
	case StateOpen:
		return fmt.Sprintf("%s %s is failing", v.id, circuitName(v.worst))
	case StateHalfOpen:
		return fmt.Sprintf("%s %s is being tried", v.id, circuitName(v.worst))
	case StateWithheld:
		if pairs := v.withheldPairs(); len(pairs) > 1 {
			return fmt.Sprintf("%d pairs of %s are withheld", len(pairs), v.id)
		}
		return fmt.Sprintf("%s of %s is withheld", v.withholding().Pair, v.id)
	case StateMaintenance:
		return string(v.id) + " is in maintenance"
	case StateLimited:
		return string(v.id) + " is limited"
	case StateFailing:
		return string(v.id) + " is failing"
	case StateNotAsked:
		return string(v.id) + " is not asked"
	case StateClosed:
	}
	return string(v.id) + " is well"
}

func severity(l Level) int {
	return slices.Index([]Level{LevelOK, LevelNotice, LevelDegraded, LevelDown}, l)
}

func worse(a, b Level) Level {
	if severity(b) > severity(a) {
		return b
	}
	return a
}

func better(a, b Level) Level {
	if severity(b) < severity(a) {
		return b
	}
	return a
}

// harm is what an exchange's state means to clients.
type harm int

const (
	harmNone    harm = iota
	harmLimited      // some answers are missing or old
	harmStale        // books are stale at best
	harmRefused      // nothing is answered
	harms            // how many there are
)

func (v *view) harm() harm {
	switch o := v.withholding(); {
	case o != nil && o.Pair.IsZero(), v.answers == AnsweringNone:
		return harmRefused
	case v.dead():
		return harmStale
	case v.level != LevelOK:
		return harmLimited
	}
	return harmNone
}

// rank orders exchanges by how bad they are: by level, so that trouble which nobody wanted comes before what an operator put
// in force, then by what clients get, then by state.
func rank(v *view) int {
	states := []State{
		StateClosed, StateNotAsked, StateLimited, StateMaintenance, StateWithheld, StateFailing, StateHalfOpen, StateOpen, StateIsolated, StateBanned,
	}
	return (severity(v.level)*int(harms)+int(v.harm()))*len(states) + slices.Index(states, v.state)
}
