package config

import (
	"net"
	"net/url"
	"strings"
	"testing"
)

// https://github.com/hudikhq/hoodik/issues/136
// https://github.com/makeplane/plane/issues/2329
func TestBaseURL_PathIsRefused(t *testing.T) {
	t.Parallel()
	for base, wrong := range map[string]bool{"": false, "https://voice.example.com": false, "https://voice.example.com/": false,
		"http://192.0.2.1:8080": false, "http://[2001:db8::1]:8080": false, "https://example.com/voice": true, "https://example.com/voice/": true,
		"https://example.com/?a=b": true, "https://example.com/#a": true, "https://ann@example.com": true, "example.com": true} {
		c := Config{BaseURL: base}
		found := c.checkBaseURL()
		if len(found) > 0 != wrong {
			t.Errorf("--base-url %q: %v", base, found)
		}
		if wrong && strings.Contains(base, "/voice") && !strings.Contains(found[0].Error(), "host name") {
			t.Errorf("the refusal of %q has no remedy: %v", base, found[0])
		}
	}
}

// https://github.com/makeplane/plane/issues/2329
func TestLinkBase_OfEveryListener(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config        Config
		listens, want string
		guessed       bool
	}{
		{Config{BaseURL: "https://voice.example.com/"}, "[::]:8080", "https://voice.example.com", false},
		{Config{}, "127.0.0.1:8080", "http://127.0.0.1:8080", false},
		{Config{}, "[::1]:8080", "http://[::1]:8080", false},
		{Config{}, "voice.example.com:80", "http://voice.example.com:80", false},
		{Config{PublicIP: "203.0.113.7"}, "0.0.0.0:8080", "http://203.0.113.7:8080", true},
		{Config{PublicIP: "2001:db8::7"}, "[::]:8080", "http://[2001:db8::7]:8080", true},
		{Config{PublicIP: "203.0.113.7"}, ":8080", "http://203.0.113.7:8080", true},
	} {
		if base, guessed := c.config.LinkBase(c.listens); base != c.want || guessed != c.guessed {
			t.Errorf("listening at %s with %q and %q: %s, guessed %v; want %s, %v", c.listens, c.config.BaseURL, c.config.PublicIP,
				base, guessed,
				c.want, c.guessed)
		}
	}
	base, guessed := (&Config{}).LinkBase("[::]:8080")
	u, err := url.Parse(base)
	if err != nil || !guessed {
		t.Fatalf("%s, guessed %v, %v", base, guessed, err)
	}
	if a := net.ParseIP(u.Hostname()); a == nil || a.IsUnspecified() || u.Port() != "8080" {
		t.Errorf("links begin with %s", base)
	}
}
