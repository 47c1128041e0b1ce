package config_test

import (
	"reflect"
	"strings"
	"testing"
)

// serviceLinks are the variables that Kubernetes gives a container for one Service with two ports, one of them named.
func serviceLinks(service string) []string {
	n := strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
	return []string{
		n + "_SERVICE_HOST=10.0.0.1", n + "_SERVICE_PORT=80", n + "_SERVICE_PORT_HTTP=80", n + "_SERVICE_PORT_HTTP_2=8081", n + "_PORT=tcp://10.0.0.1:80",
		n + "_PORT_80_TCP=tcp://10.0.0.1:80", n + "_PORT_80_TCP_PROTO=tcp", n + "_PORT_80_TCP_PORT=80", n + "_PORT_80_TCP_ADDR=10.0.0.1",
		n + "_PORT_8081_UDP=udp://10.0.0.1:8081", n + "_PORT_8081_UDP_PROTO=udp", n + "_PORT_8081_UDP_PORT=8081", n + "_PORT_8081_UDP_ADDR=fd00::1",
	}
}

// TestLoad_kubernetesServiceLinks: a Service in the namespace whose name begins with gateway changes nothing. GATEWAY_PORT and
// its like were settings that do not exist, and the gateway did not start (kubernetes/kubernetes#35189).
func TestLoad_kubernetesServiceLinks(t *testing.T) {
	want, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"gateway", "gateway-admin", "gateway-redis", "gateway-exchanges-okx", "gateway-log", "gateway-config", "gateway-2"} {
		got, err := load(t, "", serviceLinks(service), nil)
		if err != nil {
			t.Errorf("%s: %v", service, err)
			continue
		}
		got.StateDir, got.KeysFile = want.StateDir, want.KeysFile // each load has a home of its own
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: loads as %+v", service, got)
		}
	}
	for _, mistake := range []string{
		"GATEWAY_PORT=8080", "GATEWAY_ADMIN_PORT=8081", "GATEWAY_REDIS_PORT=6379", "GATEWAY_SERVICE=x", "GATEWAY_REDIS_HOST=redis",
		"GATEWAY_PORT_80=tcp://10.0.0.1:80", "GATEWAY_EXCHANGES_OKX_SERVICE_HOSTS=x", "GATEWAY_PORT=http://10.0.0.1:80",
	} {
		name, _, _ := strings.Cut(mistake, "=")
		if _, err := load(t, "", []string{mistake}, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", mistake, err)
		}
	}
}
