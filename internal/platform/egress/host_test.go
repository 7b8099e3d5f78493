package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/platform/egress"
)

func TestCheckMedia(t *testing.T) {
	t.Parallel()
	g := egress.New([]netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")})
	for _, c := range []struct {
		media, signalling string
		want              bool
	}{
		{"8.8.8.8", "9.9.9.9", true},
		{"192.168.1.5", "9.9.9.9", false}, // behind NAT: the source of its audio is learned
		{"192.168.1.5", "192.168.1.7", true},
		{"100.64.3.1", "10.0.0.1", true},
		{"192.168.1.5", "127.0.0.1", true}, // a proxy on this machine
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "192.168.1.7", false},
		{"::ffff:127.0.0.1", "9.9.9.9", false},
		{"169.254.169.254", "192.168.1.7", false},
		{"169.254.169.254", "9.9.9.9", false},
		{"224.0.0.1", "192.168.1.7", false},
		{"fe80::1", "2606:4700::1", false},
		{"10.9.1.1", "9.9.9.9", true},
	} {
		err := g.CheckMedia(netip.MustParseAddr(c.media), netip.MustParseAddr(c.signalling))
		if (err == nil) != c.want {
			t.Errorf("audio to %s by a peer at %s: %v", c.media, c.signalling, err)
		}
	}
	if g.CheckMedia(netip.MustParseAddr("127.0.0.1"), netip.Addr{}) == nil {
		t.Error("a peer that is unknown names this machine")
	}
}

func TestIsWebAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://crm.example/p/42": true, "http://10.0.0.1:8000/#x/42": true, "HTTPS://crm.example": true,
		"": false, "javascript:alert(1)": false, "JavaScript:alert(1)": false, " javascript:alert(1)": false, "java\nscript:alert(1)": false,
		"data:text/html,<script>": false, "vbscript:x": false, "//evil.example": false, "/x": false, "https:evil": false, "https://": false,
		"ftp://crm.example/": false, "tel:+12025550123": false, "https://x/" + strings.Repeat("x", 2048): false,
	} {
		if got := egress.IsWebAddress(text); got != want {
			t.Errorf("%.60q: %t", text, got)
		}
	}
}
