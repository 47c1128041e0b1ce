package exchange_test

import (
	"slices"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
)

func TestBaseURLs(t *testing.T) {
	own := []string{"https://own.example"}
	f := func(configured, want []string) {
		t.Helper()
		got, err := exchange.BaseURLs(configured, own)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v, %v, want %v", configured, got, err, want)
		}
	}
	f(nil, own)
	f([]string{"https://a.example/", "http://127.0.0.1:8080"}, []string{"https://a.example", "http://127.0.0.1:8080"})
	f([]string{"http://[::1]:9", "https://a.example/under/a/path/"}, []string{"http://[::1]:9", "https://a.example/under/a/path"})
	bad := []string{"a.example", "ftp://a.example", "https://", "https://a.example/?k=SECRET", "https://u:SECRET@a.example", "%zz", "", "https://a.example#x"}
	_, err := exchange.BaseURLs(bad, own)
	if err == nil || strings.Count(err.Error(), "not a base URL") != len(bad) {
		t.Errorf("every mistake is named: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "SECRET") {
		t.Errorf("the error shows a password: %v", err)
	}
}
