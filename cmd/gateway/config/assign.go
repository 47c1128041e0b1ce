package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// assign sets the one setting at path, for example "exchanges.okx.market_data.timeout", from text.
func (c *Config) assign(known []market.ExchangeID, path, value string) error {
	return walk(reflect.ValueOf(c).Elem(), known, strings.Split(path, "."), func(leaf reflect.Value) error {
		return setLeaf(leaf, value)
	})
}

// exists tells whether path names a setting.
func (c *Config) exists(known []market.ExchangeID, path string) bool {
	probe := Config{Exchanges: Exchanges{}}
	return walk(reflect.ValueOf(&probe).Elem(), known, strings.Split(path, "."), func(reflect.Value) error { return nil }) == nil
}

// walk finds the field at path and changes it. An entry of a map is copied out, changed and put back, and made where
// it is missing.
func walk(v reflect.Value, known []market.ExchangeID, path []string, change func(reflect.Value) error) error {
	if len(path) == 0 {
		if isLeaf(v.Type()) {
			return change(v)
		}
		return fmt.Errorf("it is a group of settings: name one of %s", strings.Join(fieldNames(v), ", "))
	}
	switch {
	case isLeaf(v.Type()):
		return fmt.Errorf("there is no setting below it")
	case v.Kind() == reflect.Map:
		return walkMap(v, known, path, change)
	}
	for i := range v.NumField() {
		if settingName(v.Type().Field(i)) == path[0] {
			return walk(v.Field(i), known, path[1:], change)
		}
	}
	return fmt.Errorf("there is no setting %q here; the settings are %s", path[0], strings.Join(fieldNames(v), ", "))
}

func walkMap(v reflect.Value, known []market.ExchangeID, path []string, change func(reflect.Value) error) error {
	if v.Type() == reflect.TypeFor[Exchanges]() && !slices.Contains(known, market.ExchangeID(path[0])) {
		return fmt.Errorf("exchange %q is unknown; the exchanges are %s", path[0], list(known))
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	key := reflect.ValueOf(path[0]).Convert(v.Type().Key())
	entry := reflect.New(v.Type().Elem()).Elem()
	if old := v.MapIndex(key); old.IsValid() {
		entry.Set(old)
	}
	if err := walk(entry, known, path[1:], change); err != nil {
		return err
	}
	v.SetMapIndex(key, entry)
	return nil
}

func isLeaf(t reflect.Type) bool {
	return t == reflect.TypeFor[market.Secret]() || t.Kind() != reflect.Struct && t.Kind() != reflect.Map
}

func fieldNames(v reflect.Value) []string {
	if v.Kind() != reflect.Struct {
		return []string{"a name"}
	}
	names := make([]string, v.NumField())
	for i := range names {
		names[i] = settingName(v.Type().Field(i))
	}
	return names
}

// settingName is what the file calls a field.
func settingName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// setLeaf reads text into one setting. Lists are separated by commas. An error shows text only where it cannot be a secret
// out of place: no duration stands beside one, and this is too short.
func setLeaf(v reflect.Value, text string) error {
	switch into := v.Addr().Interface().(type) {
	case *string:
		*into = text
	case *market.Secret:
		*into = market.NewSecret(text)
	case *[]string:
		*into = strings.Split(text, ",")
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s is not a duration: write a number and a unit, for example 300ms, 5s or 1h30m; a day is 24h", short(text))
		}
		*into = d
	case *bool:
		return setBool(into, text)
	case **bool:
		*into = new(bool)
		return setBool(*into, text)
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("a whole number is wanted")
		}
		*into = n
	case *float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("a number is wanted, for example 0.5")
		}
		*into = f
	default:
		return fmt.Errorf("settings of type %s cannot be given as text", v.Type())
	}
	return nil
}

func setBool(into *bool, text string) error {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("true or false is wanted")
	}
	*into = b
	return nil
}

func short(text string) string {
	if len(text) > 8 {
		return "this"
	}
	return strconv.Quote(text)
}
