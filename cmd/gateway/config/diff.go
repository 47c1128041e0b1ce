package config

import (
	"reflect"
	"slices"
	"sort"
	"strings"
)

// Diff lists the settings that differ, by path, sorted. It tells that a secret differs and nothing of it.
func Diff(a, b Config) []string {
	var paths []string
	diff(reflect.ValueOf(a), reflect.ValueOf(b), nil, &paths)
	sort.Strings(paths)
	return paths
}

func diff(a, b reflect.Value, at []string, paths *[]string) {
	switch {
	case isLeaf(a.Type()):
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			*paths = append(*paths, strings.Join(at, "."))
		}
	case a.Kind() == reflect.Map:
		keys := a.MapKeys()
		for _, k := range b.MapKeys() {
			if !a.MapIndex(k).IsValid() {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			diff(entry(a, k), entry(b, k), append(slices.Clone(at), k.String()), paths)
		}
	default:
		for i := range a.NumField() {
			diff(a.Field(i), b.Field(i), append(slices.Clone(at), settingName(a.Type().Field(i))), paths)
		}
	}
}

// entry is a map's value, zero where the map has none.
func entry(m, key reflect.Value) reflect.Value {
	if v := m.MapIndex(key); v.IsValid() {
		return v
	}
	return reflect.Zero(m.Type().Elem())
}
