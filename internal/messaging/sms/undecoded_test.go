package sms

import "testing"

// https://github.com/Mnexa-AI/e2a/issues/804
func TestPlainText_OctetsNotSentOn(t *testing.T) {
	t.Parallel()
	octets := Undecoded([]byte("caf\xe9"), "application/octet-stream; data_coding=0")
	if octets.URL != "data:application/octet-stream;data_coding=0;base64,Y2Fm6Q==" || octets.SizeBytes != 4 {
		t.Errorf("%+v", octets)
	}
	for _, c := range []struct {
		body  string
		media []Media
		want  string
	}{
		{"", []Media{octets}, ""},
		{"a", []Media{octets, {URL: "https://a.example/1"}}, "a\nhttps://a.example/1"},
		{"", []Media{{URL: "https://a.example/1"}}, "https://a.example/1"},
		{"a", nil, "a"},
	} {
		if got := PlainText(c.body, c.media); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := Readable("J\xf6rg\x00"); got != "J\ufffdrg\ufffd" {
		t.Errorf("%q", got)
	}
}
