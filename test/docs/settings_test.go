package docs_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// settings are every setting of an exchange called <id> with an account called <name>, as its path and its default.
func settings() map[string]any {
	conf := config.Default()
	conf.Exchanges = config.Exchanges{"<id>": {Accounts: map[string]config.Account{"<name>": {}}}}
	all := map[string]any{}
	collect(all, "", reflect.ValueOf(app.InForce(conf)))
	return all
}

func collect(all map[string]any, path string, v reflect.Value) {
	join := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch {
	case v.Type() == reflect.TypeFor[market.Secret](), v.Kind() != reflect.Struct && v.Kind() != reflect.Map:
		all[path] = v.Interface()
	case v.Kind() == reflect.Map:
		for key, value := range v.Seq2() {
			collect(all, join(key.String()), value)
		}
	default:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			collect(all, join(name), v.Field(i))
		}
	}
}

// computed are the settings whose default depends on the machine or is the adapter's own.
var computed = []string{"instance", "state_dir", "keys_file", "exchanges.<id>.hosts", "exchanges.<id>.account_hosts", "exchanges.<id>.stream_hosts", "exchanges.<id>.region"}

// TestREADME_namesEverySetting: each setting stands in the README with its true default, and nothing else does.
func TestREADME_namesEverySetting(t *testing.T) {
	left := settings()
	check := func(path, says string) {
		want, ok := left[path]
		if !ok {
			t.Errorf("there is no setting %s, or it stands in the README twice", path)
			return
		}
		delete(left, path)
		if !slices.Contains(computed, path) && says != words(want) {
			t.Errorf("the default of %s is %q in the README and %q in the code", path, says, words(want))
		}
	}
	for _, row := range rows(t, part(t, "settings")) {
		paths, defaults := quoted(row[0]), strings.Split(row[1], ", ")
		if len(defaults) != len(paths) { // one for all of them
			defaults = slices.Repeat(defaults[:1], len(paths))
		}
		for i, path := range paths {
			check(path, strings.Trim(defaults[i], "`"))
		}
	}
	for _, row := range rows(t, part(t, "classes")) {
		for i, class := range []string{"market_data", "reference", "account", "stream"} {
			check("exchanges.<id>."+class+"."+strings.Trim(row[0], "`"), row[1+i])
		}
	}
	if len(left) > 0 {
		t.Errorf("the README does not name %v", slices.Sorted(maps.Keys(left)))
	}
}

// words writes a default as the README does.
func words(v any) string {
	switch v := v.(type) {
	case time.Duration:
		for _, unit := range []struct {
			size time.Duration
			name string
		}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
			if n := v.Seconds() / unit.size.Seconds(); n >= 1 {
				return strconv.FormatFloat(n, 'g', -1, 64) + " " + unit.name
			}
		}
		return fmt.Sprintf("%d ms", v.Milliseconds())
	case *bool:
		return strconv.FormatBool(*v)
	case market.Secret:
		return words(v.Reveal())
	case []string:
		return words(strings.Join(v, ","))
	case string:
		if v == "" {
			return "none"
		}
		return v
	}
	return fmt.Sprint(v)
}

// TestREADME_exampleOfTheFileLoads: the YAML that the README shows is accepted, but for the files that it names.
func TestREADME_exampleOfTheFileLoads(t *testing.T) {
	_, rest, ok := strings.Cut(read(t, "README.md"), "```yaml\n")
	text, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README shows no YAML")
	}
	secret := write(t, "secret", "fake\n")
	for _, name := range []string{"key", "secret", "passphrase"} {
		text = strings.Replace(text, "/run/secrets/okx_"+name, secret, 1)
	}
	c, err := config.Load(config.Sources{File: write(t, "gateway.yaml", text), Home: t.TempDir(), Known: app.ExchangeIDs()})
	if err != nil {
		t.Fatal(err)
	}
	if okx := c.Exchanges["okx"]; okx.Region != "eea" || okx.Accounts["main"].Passphrase.Reveal() != "fake" || c.Exchanges["coinbase"].On() {
		t.Errorf("okx is %+v, coinbase on: %v", okx, c.Exchanges["coinbase"].On())
	}
}
