package adapter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/jsonpath"
	"soniq/internal/platform/op"
	"soniq/internal/platform/placeholder"
)

// check returns the violations of the settings.
func (s *HTTPSettings) check(g *egress.Guard) (wrong []op.Violation) {
	bad := func(field, code string, err error) {
		if err != nil {
			wrong = append(wrong, op.Field("settings."+field, code, err.Error()))
		}
	}
	for _, x := range []struct {
		name  string
		f     *LookupTemplate
		names []string
	}{{"lookup", s.Lookup, phonePlaceholders}, {"email_lookup", s.EmailLookup, []string{"email"}}} {
		if x.f == nil {
			continue
		}
		bad(x.name+".url", "invalid_url", checkURLTemplate(g, x.f.URL, x.names))
		bad(x.name+".body", "unknown_placeholder", placeholder.Check(x.f.Body, x.names))
		_, err := jsonpath.Parse(x.f.Results)
		bad(x.name+".results", "invalid_path", err)
		bad(x.name+".method", "invalid_value", checkOneOf(x.f.Method, "", "GET", "POST"))
		for _, f := range x.f.Formats {
			bad(x.name+".formats", "invalid_value", checkOneOf(f, slices.Sorted(maps.Keys(phoneFormats))...))
		}
		if len(x.f.Formats) > 5 {
			bad(x.name+".formats", "too_many", errors.New("may have 5"))
		}
	}
	for _, x := range []struct {
		name  string
		w     *WriteTemplate
		names []string
	}{{"upsert", s.Upsert, contactPlaceholders}, {"update", s.Update, contactPlaceholders}, {"note", s.Note, notePlaceholders},
		{"call_log", s.CallLog, callPlaceholders}, {"call_update", s.CallUpdate, callUpdatePlaceholders}} {
		if x.w == nil {
			continue
		}
		bad(x.name+".url", "invalid_url", checkURLTemplate(g, x.w.URL, x.names))
		bad(x.name+".body", "unknown_placeholder", placeholder.Check(x.w.Body, x.names))
		_, err := jsonpath.Parse(x.w.ID)
		bad(x.name+".id", "invalid_path", err)
		bad(x.name+".method", "invalid_value", checkOneOf(x.w.Method, "", "POST", "PUT", "PATCH"))
	}
	return append(wrong, s.checkRest()...)
}

func (s *HTTPSettings) checkRest() (wrong []op.Violation) {
	if s.Lookup == nil && s.EmailLookup == nil && s.Upsert == nil && s.Note == nil && s.CallLog == nil {
		wrong = append(wrong, op.Field("settings", "required", "give at least one of lookup, email_lookup, upsert, note and call_log"))
	}
	wrong = append(wrong, checkRecordURL(s.RecordURL)...)
	if s.RequestsPerMinute < 0 || s.RequestsPerMinute > 60_000 {
		wrong = append(wrong, op.Field("settings.requests_per_minute", "invalid_value", "must be between 1 and 60000"))
	}
	return append(append(wrong, checkHeaders(s.Headers)...), s.Auth.check()...)
}

func checkHeaders(all map[string]string) []op.Violation {
	if len(all) > 20 {
		return []op.Violation{op.Field("settings.headers", "too_many", "may have 20")}
	}
	for name, value := range all {
		if !isSettableHeader(name) || strings.ContainsAny(value, "\r\n\x00") || len(value) > 4096 {
			return []op.Violation{op.Field("settings.headers", "invalid_value", "not a header: "+name)}
		}
	}
	return nil
}

// isSettableHeader reports whether the customer may set a header. Connection and framing headers are reserved (RFC
// 9110 §5.1, §7.6.1).
func isSettableHeader(name string) bool {
	letters := strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_")
	return name != "" && len(name) <= 100 && letters == "" &&
		!slices.Contains([]string{"host", "connection", "content-length", "transfer-encoding", "te",
			"upgrade", "trailer", "keep-alive", "proxy-authorization"}, strings.ToLower(name))
}

func (a *Auth) check() (wrong []op.Violation) {
	switch {
	case a == nil:
		return nil
	case a.Type == "bearer" && a.Token == "", a.Type == "header" && (a.Token == "" || !isSettableHeader(a.Header)), a.Type == "basic" &&
		a.Username == "":
		return []op.Violation{op.Field("settings.auth", "required",
			"bearer needs token, basic username and password, header its name and a token")}
	case strings.ContainsAny(a.Token+a.Username+a.Password, "\r\n\x00"):
		return []op.Violation{op.Field("settings.auth", "invalid_value", "may have no line breaks")}
	}
	if err := checkOneOf(a.Type, "bearer", "basic", "header"); err != nil {
		return []op.Violation{op.Field("settings.auth.type", "invalid_value", err.Error())}
	}
	return nil
}

func checkOneOf(text string, all ...string) error {
	if slices.Contains(all, text) {
		return nil
	}
	return fmt.Errorf("must be one of %s", strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", "))
}

// checkURLTemplate checks an address with placeholders. The host must be fixed, so that no number or name determines
// the target of a request.
func checkURLTemplate(g *egress.Guard, text string, known []string) error {
	if err := placeholder.Check(text, known); err != nil {
		return err
	}
	scheme, rest, _ := strings.Cut(text, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	if strings.Contains(scheme+host, "{{") {
		return errors.New("the host must not contain placeholders")
	}
	return g.Check(placeholder.Fill(text, nil, func(string) string { return "x" }))
}
