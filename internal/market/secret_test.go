package market_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

// holder has secrets in fields of every sort.
type holder struct {
	Shown  market.Secret
	hidden market.Secret
	inside struct{ deeper market.Secret }
	Ptr    *market.Secret
	Cred   market.Credential
}

func TestSecret_cannotBeShown(t *testing.T) {
	const text = "EXAMPLE-NOT-A-REAL-SECRET"
	s := market.NewSecret(text)
	h := holder{Shown: s, hidden: s, Ptr: &s, Cred: market.Credential{Key: s, Secret: s, Passphrase: s}}
	h.inside.deeper = s
	hex := fmt.Sprintf("%x", text)
	for _, v := range []any{s, &s, h, &h, []market.Secret{s}, map[string]market.Secret{"k": s}, h.Cred, struct{ s market.Secret }{s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%p", "%c", "%U"} {
			shown := fmt.Sprintf(verb, v)
			if strings.Contains(shown, text) || strings.Contains(strings.ToLower(shown), hex) {
				t.Errorf("%s of a %T shows the secret: %s", verb, v, shown)
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", slog.Any("v", v))
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", slog.Any("v", v))
		encoded, err := json.Marshal(v)
		if err != nil || strings.Contains(log.String()+string(encoded), text) {
			t.Errorf("a %T is logged or encoded: %v\n%s%s", v, err, log.String(), encoded)
		}
	}
	if err := fmt.Errorf("account %v: %w", h, fmt.Errorf("key %v", &s)); strings.Contains(err.Error(), text) {
		t.Errorf("an error shows it: %v", err)
	}
	if got := s.Reveal(); got != text {
		t.Errorf("Reveal() = %q", got)
	}
}

func TestSecret_reads(t *testing.T) {
	var c market.Credential
	if err := json.Unmarshal([]byte(`{"Key":"k","Secret":"s"}`), &c); err != nil || c.Key.Reveal() != "k" || c.Secret.Reveal() != "s" {
		t.Errorf("got %q %q, %v", c.Key.Reveal(), c.Secret.Reveal(), err)
	}
	if c.Key.IsZero() || !c.Passphrase.IsZero() || c.Passphrase.Reveal() != "" {
		t.Errorf("zero: %t, %t, %q", c.Key.IsZero(), c.Passphrase.IsZero(), c.Passphrase.Reveal())
	}
	if market.NewSecret("") != (market.Secret{}) || !market.NewSecret("").IsZero() {
		t.Error("no text is not the zero secret")
	}
}
