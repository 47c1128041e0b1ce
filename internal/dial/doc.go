// Package dial opens connections to names that may have several addresses, of which some may not answer, and tells a shortage
// of this machine from a failure of the other end. It knows no protocol above TCP, and it retries nothing: whoever dials
// decides whether to try again.
package dial
