package exchangesim

import (
	"net/http"
	"slices"
	"time"
)

// okxStatus is an announcement of /system/status.
type okxStatus struct {
	begin, end time.Time
}

// Announce makes OKX's /system/status tell of planned maintenance of the trading service between two moments: scheduled before,
// ongoing within, completed after. It does not take the venue down: inject [FaultMaintenance] for that. Other venues have no such
// announcement. At most 100 are kept; the oldest goes first.
func (v *Venue) Announce(begin, end time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = append(v.status, okxStatus{begin, end})
	if n := len(v.status); n > 100 {
		v.status = slices.Delete(v.status, 0, n-100)
	}
}

func (o *okx) systemStatus(c *call) answer {
	states := []string{"scheduled", "ongoing", "pre_open"}
	if want := c.query.Get("state"); want != "" {
		if !slices.Contains([]string{"scheduled", "ongoing", "pre_open", "completed", "canceled"}, want) {
			return okxError(http.StatusBadRequest, "51000", "Parameter state error.")
		}
		states = []string{want}
	}
	o.v.mu.Lock()
	windows := slices.Clone(o.v.status)
	o.v.mu.Unlock()
	if c.fx.inMaintenance {
		begin := c.now.Truncate(time.Hour)
		end := begin.Add(2 * time.Hour)
		if known := c.fx.maintenanceEnds; !known.IsZero() {
			end = known
		}
		windows = append(windows, okxStatus{begin, end})
	}
	rows := []object{}
	for _, w := range windows {
		state := "ongoing"
		switch {
		case c.now.Before(w.begin):
			state = "scheduled"
		case !c.now.Before(w.end):
			state = "completed"
		}
		if !slices.Contains(states, state) {
			continue
		}
		rows = append(rows, object{
			"title": "Trading service upgrade", "state": state, "begin": msText(w.begin), "end": msText(w.end), "href": "", "preOpenBegin": "",
			"scheDesc": "", "serviceType": "5", "maintType": "1", "env": "1", "system": "unified",
		})
	}
	return okxData(rows)
}
