package adapter

import (
	"net/url"
	"strings"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
	"soniq/internal/platform/placeholder"
)

// checkRecordURL returns the violations of the address at which people look at a record; "" is none. People open it: its scheme and host
// are fixed, and nothing but a web page is allowed.
func checkRecordURL(text string) []op.Violation {
	if err := placeholder.Check(text, []string{"external_id"}); err != nil {
		return []op.Violation{op.Field("settings.record_url", "unknown_placeholder", err.Error())}
	}
	page := placeholder.Fill(text, nil, func(string) string { return "x" })
	if u, err := url.Parse(page); text != "" && (err != nil || !egress.IsWebAddress(page) || !strings.HasPrefix(strings.ToLower(text), strings.ToLower(u.Scheme+"://"+u.Host))) {
		return []op.Violation{op.Field("settings.record_url", "invalid_url", "must begin with https:// or http:// and a host without placeholders")}
	}
	return nil
}
