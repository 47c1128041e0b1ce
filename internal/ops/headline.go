package ops

import (
	"fmt"
	"slices"
)

// headline is the worst of all exchanges, in words.
func headline(views []view) (Level, string) {
	level, silent, degraded := LevelOK, 0, 0
	var worst *view
	for i := range views {
		v := &views[i]
		if v.dead() && v.streaming() == 0 {
			silent++
		}
		if v.level == LevelDegraded {
			degraded++
		}
		if worst == nil || rank(v) > rank(worst) {
			worst = v
		}
		level = worse(level, v.level)
	}
	switch {
	case worst == nil:
		return LevelOK, "No exchange is enabled."
	case level == LevelOK && len(views) == 1:
		return LevelOK, fmt.Sprintf("All is well: %s answers.", worst.id)
	case level == LevelOK:
		return LevelOK, fmt.Sprintf("All is well: %d exchanges answer.", len(views))
	}
	text := string(worst.id) + ": " + worst.why + "; " + worst.clients + "."
	switch {
	case silent == len(views):
		level = LevelDown
		if len(views) > 1 {
			text = "No exchange answers. " + text
		}
	case degraded > 1:
		text = fmt.Sprintf("%d of %d exchanges are in trouble. ", degraded, len(views)) + text
	}
	return level, text
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

// rank orders exchanges by how bad they are: by level, then by state.
func rank(v *view) int {
	states := []State{StateClosed, StateLimited, StateMaintenance, StateWithheld, StateHalfOpen, StateOpen, StateIsolated, StateBanned}
	return severity(v.level)*len(states) + slices.Index(states, v.state)
}
