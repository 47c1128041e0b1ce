// Package archtest keeps the arrows of the house: imports point down, and each outside library has one door. It holds
// only tests.
package archtest
