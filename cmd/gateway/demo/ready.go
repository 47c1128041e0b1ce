package demo

import (
	"encoding/json"
	"fmt"
	"os"

	"exchange-gateway/internal/market"
)

// readiness tells a script where everything listens.
type readiness struct {
	Public  string                       `json:"public"`  // the API
	Admin   string                       `json:"admin"`   // the dashboard
	Control string                       `json:"control"` // where the simulated exchanges are told to misbehave
	Key     string                       `json:"key"`     // of the demo's client, with market:read and account:read
	Venues  map[market.ExchangeID]string `json:"venues"`  // the simulated exchanges themselves
}

// writeReady writes the file whole or not at all: whoever waits for it may read it once it is there. Nobody else on the
// machine may, for it holds a key.
func writeReady(path string, s scene, public, admin string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(readiness{Public: public, Admin: admin, Control: s.control, Key: s.key.Reveal(), Venues: s.venues})
	if err == nil {
		err = os.WriteFile(path+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}
