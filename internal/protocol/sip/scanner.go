package sip

import "strings"

// scanners are names that programs for breaking in give themselves.
var scanners = []string{"friendly-scanner", "sipvicious", "sundayddr", "sip-scan", "sipscan", "sipcli", "vaxsipuseragent", "iwar", "sivus", "pplsip", "smap "}

// isScanner tells whether a User-Agent is one of a scanner.
func isScanner(agent string) bool {
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
