package access

import (
	"net/http"
	"strings"
)

// Bearer returns the credential of a request with the scheme Bearer (RFC 6750 §2.1). The name of the scheme is compared without
// case, and any number of spaces may follow it (RFC 9110 §11.1, §11.4). ok is false if the request has no such credential.
func Bearer(r *http.Request) (credential string, ok bool) {
	value := strings.Trim(r.Header.Get("Authorization"), " \t")
	at := strings.IndexAny(value, " \t")
	if at < 0 || !strings.EqualFold(value[:at], "Bearer") {
		return "", false
	}
	return strings.Trim(value[at:], " \t"), true
}
