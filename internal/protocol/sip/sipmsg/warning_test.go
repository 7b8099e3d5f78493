package sipmsg

import (
	"strings"
	"testing"
)

func TestWarningField_QuotedAndWithoutLineBreaks(t *testing.T) {
	t.Parallel()
	if got := WarningField(""); got != "" {
		t.Errorf("no text gives %q", got)
	}
	got := WarningField("no \"phone\" \\ here\r\nX-Injected: 1")
	if got != "Warning: 399 soniq \"no 'phone' / here  X-Injected: 1\"\r\n" || strings.Count(got, "\r\n") != 1 {
		t.Errorf("got %q", got)
	}
}
