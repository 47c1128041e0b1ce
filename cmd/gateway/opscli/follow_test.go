package opscli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/opscli"
	"exchange-gateway/internal/market"
)

func event(boot string, seq uint64) string {
	text, err := json.Marshal(market.Event{
		Boot: boot, Seq: seq, At: time.Unix(1_700_000_000, 0), Type: market.EventAction,
		Action: market.Action{Verb: market.VerbReload, Actor: "ann", Reason: "a test"},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// lives are the connections that a gateway answers, one after the other, and what was asked with.
type lives struct {
	mu     sync.Mutex
	frames [][]string
	asked  []string // Last-Event-ID of each
}

func (l *lives) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked = append(l.asked, r.Header.Get("Last-Event-ID"))
	n := len(l.asked) - 1
	l.mu.Unlock()
	if n >= len(l.frames) {
		http.Error(w, `{"code":"unauthenticated","detail":"The key was revoked."}`, http.StatusUnauthorized)
		return
	}
	for _, f := range l.frames[n] {
		fmt.Fprint(w, f)
	}
}

// TestFollow_passesEachEventOnce: over a restart of the gateway, from the history where the last event is known and from a
// snapshot where it is not.
func TestFollow_passesEachEventOnce(t *testing.T) {
	frame := func(name, id, data string) string {
		return fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, name, data)
	}
	gateway := &lives{frames: [][]string{
		{
			"retry: 1000\n\n", frame("snapshot", "a-2", `{"history_since":"2026-11-29T02:00:00Z","events":[`+event("a", 1)+","+event("a", 2)+"]}"),
			": ping\n\n", frame("event", "a-3", event("a", 3)),
		},
		{frame("event", "b-1", event("b", 1)), "event: state\ndata: {}\n\n", "event: bye\ndata: {\"reason\":\"stopping\"}\n\n"},
		{frame("snapshot", "b-2", `{"events":[`+event("a", 3)+","+event("b", 1)+","+event("b", 2)+"]}")},
	}}
	server := httptest.NewServer(gateway)
	defer server.Close()
	var got []string
	lost, back, since := 0, 0, time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := (&opscli.Client{Base: server.URL}).Follow(ctx, true, opscli.Follower{
		Event: func(ev market.Event) { got = append(got, ev.ID()) },
		Lost:  func(error) { lost++ }, Back: func(time.Duration) { back++ }, Since: func(at time.Time) { since = at },
	})
	if r, ok := errors.AsType[*opscli.Refusal](err); !ok || r.Detail != "The key was revoked." {
		t.Errorf("it ended with %v", err)
	}
	if want := []string{"a-1", "a-2", "a-3", "b-1", "b-2"}; !slices.Equal(got, want) {
		t.Errorf("passed %v, want %v", got, want)
	}
	if want := []string{"", "a-3", "b-1", "b-2"}; !slices.Equal(gateway.asked, want) {
		t.Errorf("asked with %q, want %q", gateway.asked, want)
	}
	if lost != 3 || back != 2 || since.IsZero() {
		t.Errorf("lost %d times, back %d times, known since %v", lost, back, since)
	}
}

// TestFollow_endsWithThePast: without following it ends as soon as the state comes.
func TestFollow_endsWithThePast(t *testing.T) {
	server := httptest.NewServer(&lives{frames: [][]string{{"event: snapshot\nid: a-1\ndata: {\"events\":[" + event("a", 1) + "]}\n\n"}}})
	defer server.Close()
	n := 0
	err := (&opscli.Client{Base: server.URL}).Follow(t.Context(), false, opscli.Follower{
		Event: func(market.Event) { n++ }, Since: func(time.Time) {},
	})
	if err != nil || n != 1 {
		t.Errorf("%d events, %v", n, err)
	}
}

// TestFollow_saysWhyNot: nobody is there, or it is not a gateway.
func TestFollow_saysWhyNot(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for base, want := range map[string]string{"http://127.0.0.1:1": "no gateway answers", server.URL: "404"} {
		err := (&opscli.Client{Base: base}).Follow(t.Context(), true, opscli.Follower{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", base, err, want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	for _, text := range []string{
		"event: state\ndata: {}\n\n", "retry: 1000\n\nid: a-1\nevent: event\ndata: {\ndata: }\n\n", ": ping\n\n", "data\n\n", "event:x\r\n\r\n", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := bufio.NewReader(strings.NewReader(text))
		for range len(text) + 2 {
			name, data, id, err := opscli.Frame(r)
			if err != nil {
				return
			}
			if strings.Contains(name+id, "\n") || len(name)+len(data)+len(id) > len(text) {
				t.Fatalf("%q gave %q %q %q", text, name, data, id)
			}
		}
		t.Fatalf("%q never ends", text)
	})
}
