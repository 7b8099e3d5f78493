package api_test

import (
	"net/url"
	"strings"
	"testing"
)

// numbersAlike writes one number in many ways at every place that takes the number of another party
// (https://github.com/glific/glific/issues/4815).
func numbersAlike(t *testing.T, s *stage) {
	const number = "+12025550177"
	d := s.org(t, "live")
	d.want(t, 201, "POST", "/contacts", map[string]any{"first_name": "Alike", "phones": []map[string]any{{"number": number}}}, nil)
	for _, written := range []string{number, "2025550177", "(202) 555-0177", "+1 202.555.0177", "1-202-555-0177",
		"tel:+1-202-555-0177", "+12025550177\u202c",
		"\u202a+1 202\u00a0555\u202f0177\u202c",
		"＋１２０２５５５０１７７", "+١٢٠٢٥٥٥٠١٧٧", "+1‑202‑555‑0177", "2025550177,", "'+12025550177", "2025550177.0"} {
		escaped := url.PathEscape(written)
		for _, c := range []struct {
			method, path string
			status       int
			body         any
		}{
			{"GET", "/contacts/lookup?phone=" + url.QueryEscape(written), 200, nil},
			{"POST", "/contacts", 201, map[string]any{"first_name": "Alike", "phones": []map[string]any{{"number": written}}}},
			{"POST", "/sms/opt-outs", 201, map[string]any{"phone": written}},
			{"DELETE", "/sms/opt-outs/" + escaped, 204, nil},
			{"POST", "/memory/callers/" + escaped + "/facts", 201, map[string]any{"text": "A fact."}},
			{"GET", "/memory/callers/" + escaped, 200, nil},
		} {
			r := d.want(t, c.status, c.method, c.path, c.body, nil)
			if c.status != 204 && !strings.Contains(string(r.Body), `"`+number+`"`) {
				t.Errorf("%s %s: %q is not read as %s: %s", c.method, c.path, written, number, r.Body)
			}
		}
	}
}
