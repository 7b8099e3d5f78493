package transport

import (
	"strings"
	"testing"
)

// TestRedact_AnyBytes proves that keys are hidden in lines of SDP with bytes that are not UTF-8, or that have more bytes in lower case. A
// line of this kind ended the server.
func TestRedact_AnyBytes(t *testing.T) {
	t.Parallel()
	const key = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"
	for _, before := range []string{"1 AES_CM_128_HMAC_SHA1_80 ", "\xff\xfe\x80\xff\xfe\x80\xff\xfe\x80 ", strings.Repeat("\u0130", 20), strings.Repeat("\u2126", 20), ""} {
		for _, name := range []string{"inline:", "INLINE:", "InLine:"} {
			raw := "INVITE sip:a@b SIP/2.0\r\n\r\nv=0\r\na=crypto:" + before + name + key + "\r\nm=audio 1 RTP/SAVP 0\r\n"
			want := "INVITE sip:a@b SIP/2.0\r\n\r\nv=0\r\na=crypto:" + before + name + "***\r\nm=audio 1 RTP/SAVP 0\r\n"
			if got := NewRawMessage(raw).String(); got != want {
				t.Errorf("%q is shown as %q", raw, got)
			}
		}
	}
}

func TestRedact_PanicHidesMessage(t *testing.T) {
	t.Parallel()
	if got := redacted("secret", func(string) string { panic("no") }); got == "" || strings.Contains(got, "secret") {
		t.Errorf("%q is shown", got)
	}
}

// FuzzRedact passes any text: it must not panic, and must hide a key.
func FuzzRedact(f *testing.F) {
	f.Add("v=0\r\na=crypto:\xff\xff\xff\xff\xff\xff\xff\xff inline:")
	f.Add("k=clear:")
	f.Add("signal=")
	f.Fuzz(func(t *testing.T, text string) {
		for _, start := range []string{"INVITE sip:a SIP/2.0\r\n", "INFO sip:a SIP/2.0\r\n"} {
			redactSecrets(start + text)
			redactSecrets(start + "\r\n" + text)
		}
		if line := strings.NewReplacer("\r", "", "\n", "").Replace(text); strings.Contains(redactSDPLine("a=crypto:"+line+"inline:KEYKEYKEY"), "KEYKEYKEY") {
			t.Errorf("the key is shown after %q", line)
		}
	})
}
