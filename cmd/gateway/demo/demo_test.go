package demo_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/demo"
)

// TestRun_refusesWhatItDecidesItself: a setting that were taken and not used would mislead.
func TestRun_refusesWhatItDecidesItself(t *testing.T) {
	for set, want := range map[string]string{
		"listen=127.0.0.1:1":                          "--listen",
		"admin_listen=127.0.0.1:1":                    "--admin-listen",
		"state_dir=/tmp":                              "gateway serve",
		"keys_file=/tmp/keys.yaml":                    "gateway serve",
		"exchanges.okx.hosts=http://127.0.0.1:1":      "gateway serve",
		"exchanges.okx.enabled=false":                 "gateway serve",
		"exchanges.okx.accounts.other.key=fake":       "gateway serve",
		"exchanges.okx.stream_hosts=ws://127.0.0.1:1": "gateway serve",
		"lisen=127.0.0.1:1":                           "lisen",
	} {
		err := demo.Run(t.Context(), demo.Options{
			Out: io.Discard, Program: "gateway", Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Control: "127.0.0.1:0", Set: []string{set},
			Every: time.Hour, Outage: time.Second,
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", set, err, want)
		}
	}
}
