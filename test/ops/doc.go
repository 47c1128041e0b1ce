// Package ops tests what operators are given beside the program: the rules and alerts for Prometheus, the dashboards for
// Grafana, the runbooks, and the file that starts them all. It runs their queries in a real Prometheus that scrapes the
// real program through an outage. It holds only tests.
package ops
