package main

import (
	"io"
	"log/slog"
	"os"

	"exchange-gateway/cmd/gateway/config"
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

// readable writes durations as people write them: "1.5s", not nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
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
