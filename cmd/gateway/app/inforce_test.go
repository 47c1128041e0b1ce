package app_test

import (
	"reflect"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
)

// TestInForce_leavesNoDefaultOpen: whatever has a default is shown with it, what was set stays, and the configuration that
// was asked about is not changed.
func TestInForce_leavesNoDefaultOpen(t *testing.T) {
	conf := config.Default()
	off := false
	conf.Exchanges["okx"] = config.Exchange{Enabled: &off, MarketData: config.Class{Timeout: time.Second}}
	e := app.InForce(conf).Exchanges["okx"]
	if e.On() || e.BudgetShare != 0.7 || e.MarketData.Timeout != time.Second || e.MarketData.Deadline != 3*time.Second {
		t.Errorf("okx is %+v", e)
	}
	for _, class := range []config.Class{e.MarketData, e.Reference, e.Account, e.Stream} {
		for i, v := 0, reflect.ValueOf(class); i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("%s has no default in %+v", v.Type().Field(i).Name, class)
			}
		}
	}
	if got := conf.Exchanges["okx"]; got.BudgetShare != 0 || got.MarketData.Deadline != 0 {
		t.Errorf("the configuration itself became %+v", got)
	}
}
