package config

import "regexp"

// serviceLink matches the names, without the prefix, of the variables that Kubernetes puts into every container for each
// Service of its namespace, in the form of Docker's links: for a Service called gateway-admin GATEWAY_ADMIN_SERVICE_HOST,
// GATEWAY_ADMIN_SERVICE_PORT, GATEWAY_ADMIN_SERVICE_PORT_HTTP, GATEWAY_ADMIN_PORT_8081_TCP, GATEWAY_ADMIN_PORT_8081_TCP_ADDR
// and so on (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
var serviceLink = regexp.MustCompile(`^(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$`)

// servicePort and servicePortValue match the one of them whose name alone could be a misspelt setting: GATEWAY_PORT=tcp://10.0.0.1:80.
var (
	servicePort      = regexp.MustCompile(`^(?:[A-Z0-9_]+_)?PORT$`)
	servicePortValue = regexp.MustCompile(`^(?:tcp|udp|sctp)://`)
)

// isServiceLink tells whether a variable, its name without the prefix, was put there by Kubernetes. It says nothing about the
// gateway: a Service is called gateway because there is one.
func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || servicePort.MatchString(name) && servicePortValue.MatchString(value)
}
