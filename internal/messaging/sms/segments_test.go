package sms_test

import (
	"strings"
	"testing"

	"soniq/internal/messaging/sms"
)

func TestSegments_Count(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		encoding string
		segments int
	}{
		"nothing":                    {"", "gsm7", 1},
		"a word":                     {"hello", "gsm7", 1},
		"160 characters":             {strings.Repeat("a", 160), "gsm7", 1},
		"161 characters":             {strings.Repeat("a", 161), "gsm7", 2},
		"306 characters":             {strings.Repeat("a", 306), "gsm7", 2},
		"307 characters":             {strings.Repeat("a", 307), "gsm7", 3},
		"all of the alphabet":        {"@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ¤¡ÄÖÑÜ§¿äöñüà", "gsm7", 1},
		"80 extended":                {strings.Repeat("€", 80), "gsm7", 1},
		"81 extended":                {strings.Repeat("€", 81), "gsm7", 2},
		"no pair is split":           {strings.Repeat("a", 152) + "€" + strings.Repeat("a", 152), "gsm7", 3},
		"all extended":               {"\f^{}\\[~]|€", "gsm7", 1},
		"c with cedilla is not in":   {"ç", "ucs2", 1},
		"a backtick is not in":       {"`", "ucs2", 1},
		"70 of UCS-2":                {strings.Repeat("ж", 70), "ucs2", 1},
		"71 of UCS-2":                {strings.Repeat("ж", 71), "ucs2", 2},
		"134 of UCS-2":               {strings.Repeat("ж", 134), "ucs2", 2},
		"135 of UCS-2":               {strings.Repeat("ж", 135), "ucs2", 3},
		"35 pictures":                {strings.Repeat("😀", 35), "ucs2", 1},
		"36 pictures":                {strings.Repeat("😀", 36), "ucs2", 2},
		"no surrogate pair is split": {strings.Repeat("😀", 67), "ucs2", 3},
	} {
		if encoding, n := sms.Segments(c.text); encoding != c.encoding || n != c.segments {
			t.Errorf("%s: %s %d, not %s %d", name, encoding, n, c.encoding, c.segments)
		}
	}
}
