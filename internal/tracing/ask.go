package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// asked tells whether the environment wants traces. An error is a wish that cannot be met: a collector that hears nothing,
// or not in its language, is found out in the middle of an incident otherwise. Values are not repeated, they may hold a
// password.
func asked(env []string) (bool, error) {
	get := lookup(env)
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	const general, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	switch exporter := get("OTEL_TRACES_EXPORTER"); {
	case exporter == "none":
		return false, nil
	case exporter == "" && get(general) == "" && get(own) == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, errors.New("OTEL_TRACES_EXPORTER: the gateway knows otlp and none")
	}
	var errs []error
	for _, name := range []string{general, own} {
		if v := get(name); v != "" && !reachable(v) {
			errs = append(errs, fmt.Errorf("%s: not a URL such as http://collector:4318", name))
		}
	}
	name := "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if get(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	if p := get(name); p != "" && p != "http/protobuf" {
		errs = append(errs, fmt.Errorf("%s: the gateway speaks http/protobuf only, usually at port 4318 of a collector", name))
	}
	return len(errs) == 0, errors.Join(errs...)
}

func reachable(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// lookup reads an environment of the form of os.Environ. As OpenTelemetry has it, what is empty counts as unset.
func lookup(env []string) func(name string) string {
	return func(name string) string {
		value := ""
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				value = strings.TrimSpace(v)
			}
		}
		return value
	}
}
