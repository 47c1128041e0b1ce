package demo

import (
	"strings"
	"testing"
	"time"
)

// TestWelcome_namesAProgramThatExists: what it prints to try is pasted into a shell, where a program that make has built is
// not called gateway.
func TestWelcome_namesAProgramThatExists(t *testing.T) {
	var out strings.Builder
	newVoice(&out).welcome("http://127.0.0.1:1", "http://127.0.0.1:2", scene{options: Options{Program: "./bin/gateway", Every: time.Minute}})
	if got := out.String(); !strings.Contains(got, "\n  ./bin/gateway status --admin http://127.0.0.1:2\n") || strings.Contains(got, "MISSING") || strings.Contains(got, "EXTRA") {
		t.Errorf("printed:\n%s", got)
	}
}
