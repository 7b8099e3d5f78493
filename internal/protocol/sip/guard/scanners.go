package guard

import "strings"

// Recognition of SIP scanners.

// scanners are prefixes of the User-Agent of attack programs.
var scanners = []string{"friendly-scanner", "sipvicious", "sundayddr", "sip-scan", "sipscan", "sipcli", "vaxsipuseragent", "iwar", "sivus",
	"pplsip", "smap "}

// IsScanner reports whether a User-Agent is that of a scanner.
func IsScanner(agent string) bool {
	if agent == "" {
		return false
	}
	agent = strings.ToLower(agent)
	for _, name := range scanners {
		if strings.HasPrefix(agent, name) {
			return true
		}
	}
	return false
}
