package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// newLog writes JSON, or text where a person reads it. The level can be changed.
func newLog(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level.Set(slog.LevelInfo) // config has checked it; this is only for callers that did not
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options)), level
	}
	return slog.New(slog.NewJSONHandler(w, options)), level
}

// readable writes durations as people write them: "1.5s", not nanoseconds; and texts, some of which an exchange or a caller has
// chosen, without what turns a line around.
func readable(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Duration:
		a.Value = slog.StringValue(v.String())
	case string:
		a.Value = slog.StringValue(market.Straight(v))
	case error:
		a.Value = slog.StringValue(market.Straight(v.Error()))
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
