package sip

import "testing"

func TestAdmission_CalledUser(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"INVITE sip:911@pbx.example SIP/2.0":             "911",
		"INVITE sips:+49112;phone-context=x@pbx SIP/2.0": "+49112",
		"INVITE tel:112 SIP/2.0":                         "112",
		"INVITE sip:pbx.example SIP/2.0":                 "pbx.example",
		"INVITE":                                         "",
	} {
		if got := calledUser(line); got != want {
			t.Errorf("%s calls %q, want %q", line, got, want)
		}
	}
}
