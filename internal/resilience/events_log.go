package resilience

import (
	"context"
	"log/slog"
	"time"

	"exchange-gateway/internal/market"
)

// write logs one line. A circuit that opens and a gate that closes are for people; the rest is told at info too, since it
// ends what the warning began, or somebody wanted it so.
func write(log *slog.Logger, ev *market.Event) {
	ctx := context.Background()
	switch ev.Type {
	case market.EventCircuit:
		level := slog.LevelInfo
		if ev.To == market.CircuitOpen {
			level = slog.LevelWarn
		}
		log.LogAttrs(ctx, level, "circuit changed", circuitAttrs(ev)...)
	case market.EventGate:
		log.LogAttrs(ctx, slog.LevelWarn, "gate closed",
			slog.String("exchange", string(ev.Gate.Exchange)),
			slog.String("scope", string(ev.Gate.Scope.Kind)), slog.String("name", ev.Gate.Scope.Name),
			slog.String("kind", ev.Kind.String()), slog.Time("until", ev.Until))
	case market.EventAction:
		log.LogAttrs(ctx, slog.LevelInfo, "operator action", actionAttrs(ev)...)
	case market.EventOverride:
		log.LogAttrs(ctx, slog.LevelInfo, "override ended", overrideAttrs(&ev.Override)...)
	case market.EventMaintenance:
		log.LogAttrs(ctx, slog.LevelInfo, "maintenance", maintenanceAttrs(&ev.Maintenance)...)
	}
}

func circuitAttrs(ev *market.Event) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("exchange", string(ev.Circuit.Exchange)),
		slog.String("class", string(ev.Circuit.Class)), slog.String("family", ev.Circuit.Family),
		slog.String("from", string(ev.From)), slog.String("to", string(ev.To)), slog.String("cause", string(ev.Cause)),
		slog.Int("settled", ev.Window.Settled), slog.Int("failures", ev.Window.Failures),
		slog.Int("slow", ev.Window.Slow), slog.Int("consecutive", ev.Window.Consecutive),
		slog.String("kind", ev.Kind.String()),
	}
	return when(attrs, "next_probe", ev.Until)
}

// actionAttrs is the audit in the log: who asked for what of whom, and why.
func actionAttrs(ev *market.Event) []slog.Attr {
	a := &ev.Action
	attrs := []slog.Attr{slog.String("id", ev.ID()), slog.String("verb", string(a.Verb))}
	attrs = named(attrs, "exchange", string(ev.Exchange))
	attrs = about(attrs, a.Class, a.Pair)
	attrs = append(attrs, slog.String("actor", a.Actor), slog.String("reason", a.Reason))
	attrs = named(attrs, "failed", a.Failed)
	return when(attrs, "until", ev.Until)
}

func overrideAttrs(o *market.Override) []slog.Attr {
	attrs := []slog.Attr{slog.String("override", string(o.Kind)), slog.String("exchange", string(o.Exchange))}
	attrs = about(attrs, o.Class, o.Pair)
	attrs = append(attrs, slog.String("actor", o.Actor), slog.String("reason", o.Reason))
	attrs = when(attrs, "since", o.Since)
	return when(attrs, "until", o.Until)
}

func maintenanceAttrs(m *market.Maintenance) []slog.Attr {
	attrs := []slog.Attr{slog.String("exchange", string(m.Exchange))}
	attrs = when(attrs, "since", m.From)
	attrs = when(attrs, "until", m.Until)
	return append(attrs, slog.Bool("announced", m.Announced), slog.String("note", m.Note))
}

// about adds what an override covers, where it is less than the exchange.
func about(attrs []slog.Attr, class market.Class, pair market.Pair) []slog.Attr {
	attrs = named(attrs, "class", string(class))
	if !pair.IsZero() {
		attrs = append(attrs, slog.String("symbol", pair.String()))
	}
	return attrs
}

// named adds a text that is not empty, and when a time that is known.
func named(attrs []slog.Attr, key, text string) []slog.Attr {
	if text == "" {
		return attrs
	}
	return append(attrs, slog.String(key, text))
}

func when(attrs []slog.Attr, key string, at time.Time) []slog.Attr {
	if at.IsZero() {
		return attrs
	}
	return append(attrs, slog.Time(key, at))
}
