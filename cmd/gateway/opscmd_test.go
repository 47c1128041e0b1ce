package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/user"
	"strings"
	"testing"
	"time"
)

func TestParseUntil(t *testing.T) {
	now := time.Date(2026, 11, 29, 2, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"04:30":                time.Date(2026, 11, 29, 4, 30, 0, 0, time.Local),
		"01:30":                time.Date(2026, 11, 30, 1, 30, 0, 0, time.Local),
		"02:00":                time.Date(2026, 11, 30, 2, 0, 0, 0, time.Local),
		"2026-11-29T05:00:00Z": time.Date(2026, 11, 29, 5, 0, 0, 0, time.UTC),
	} {
		if got, err := parseUntil(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "4.30", "25:00", "tomorrow", "-1h"} {
		if got, err := parseUntil(text, now); err == nil || !strings.Contains(err.Error(), "04:30") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestActor_isTheLoginNameWhereNobodySays: a service and a container have no $USER.
func TestActor_isTheLoginNameWhereNobodySays(t *testing.T) {
	f := func(as string, env []string, login, want string) {
		t.Helper()
		got, err := orderFlags{As: as}.actor(env, func() (*user.User, error) {
			if login == "" {
				return nil, user.UnknownUserIdError(10001)
			}
			return &user.User{Username: login}, nil
		})
		if want == "" && (err == nil || !strings.Contains(err.Error(), "--as NAME")) || want != "" && err != nil || got != want {
			t.Errorf("%q, %q, %q: %q, %v", as, env, login, got, err)
		}
	}
	f("ann", []string{"USER=bob"}, "svc", "ann")
	f("", []string{"USER=bob"}, "svc", "bob")
	f("", []string{"USER="}, "svc", "svc")
	f("", nil, "svc", "svc")
	f("", nil, "", "")
	f("ann", nil, "", "ann")
}

// TestOrders_commandLines: what makes no sense is said before anybody is asked.
func TestOrders_commandLines(t *testing.T) {
	for line, want := range map[string]string{
		"isolate --reason x": "exchange",
		"isolate okx":        "--reason",
		"isolate okx --reason x --for 1h --until 04:30": "--until",
		"isolate okx --reason x --class books":          "market_data",
		"isolate okx --reason x -o yaml":                "table",
		"purge okx --reason x":                          "symbol",
		"events --type wind":                            "circuit",
	} {
		_, said, err := gateway(t, nil, strings.Fields(line)...)
		if exitCode(err, &strings.Builder{}) != 2 || !strings.Contains(said, want) {
			t.Errorf("%s: %v: %s, want %q", line, err, said, want)
		}
	}
	for line, want := range map[string]string{
		"status --admin 127.0.0.1:1":                                  "write a URL",
		"status --admin http://127.0.0.1:1 --key-file /nowhere":       "key file",
		"isolate okx --reason x --for=-1h --admin http://127.0.0.1:1": "--for",
		"isolate okx --reason x --for 0s --admin http://127.0.0.1:1":  "--for",
	} {
		_, _, err := gateway(t, nil, strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestAs_besideAnOpsKey: a name that is not used is not left out in silence.
func TestAs_besideAnOpsKey(t *testing.T) {
	f := func(me string, warns bool, sends string, args ...string) {
		t.Helper()
		var sent string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, me)
				return
			}
			text, _ := io.ReadAll(r.Body)
			sent = string(text)
			_, _ = io.WriteString(w, `{"verb":"reload"}`)
		}))
		defer srv.Close()
		_, said, err := gateway(t, []string{"USER=ann"}, append([]string{"reload", "--reason", "x", "--admin", srv.URL}, args...)...)
		if err != nil || strings.Contains(said, "Warning: --as \"bob\" is not used") != warns || !warns && said != "" {
			t.Errorf("%s %v: %v, said %q", me, args, err, said)
		}
		if want := `"actor":"` + sends + `"`; sends != "" && !strings.Contains(sent, want) || sends == "" && strings.Contains(sent, "actor") {
			t.Errorf("%s %v: sent %s, want %s", me, args, sent, want)
		}
	}
	f(`{"needs_name":false}`, true, "", "--as", "bob")
	f(`{"needs_name":false}`, false, "")
	f(`{"needs_name":true}`, false, "bob", "--as", "bob")
	f(`{"needs_name":true}`, false, "ann")
}
