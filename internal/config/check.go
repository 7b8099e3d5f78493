package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/identity/org"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/memory"
)

// check names what cannot work before anything is started.
func (c *Config) check() []error {
	var wrong []error
	if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
		wrong = append(wrong, fmt.Errorf("--http %q must be host:port", c.HTTP))
	}
	if _, err := BindAddress(c.SIP); err != nil {
		wrong = append(wrong, err)
	}
	if _, _, err := c.RTPPortRange(); err != nil {
		wrong = append(wrong, err)
	}
	if c.OrgShare < 1 || c.OrgShare > 100 {
		wrong = append(wrong, fmt.Errorf("--org-share %d must be 1 to 100 percent", c.OrgShare))
	}
	if min(c.DeviceCalls, c.UserCalls, c.OrgCalls) < 0 {
		wrong = append(wrong, errors.New("--device-calls, --user-calls and --org-calls must be 0, for no limit, or more"))
	}
	wrong = append(wrong, c.checkListeners()...)
	if c.PublicIP != "" {
		if _, err := netip.ParseAddr(c.PublicIP); err != nil {
			wrong = append(wrong, fmt.Errorf("--public-ip %q must be an IP address", c.PublicIP))
		}
	}
	if _, err := c.AllowedTargets(); err != nil {
		wrong = append(wrong, err)
	}
	if c.DB != "" && !c.IsPostgres() {
		wrong = append(wrong, fmt.Errorf("--db %q must be postgres://user:password@host/name, or empty for SQLite in the data folder",
			c.DB))
	}
	wrong = append(wrong, c.checkBaseURL()...)
	for name, networks := range map[string]string{"provision-plain": c.ProvisionPlain, "trusted-proxies": c.TrustedProxies,
		"sip-edges": c.SIPEdges} {
		if _, err := ParseNetworks(name, networks); err != nil {
			wrong = append(wrong, err)
		}
	}
	if c.ProvisionEvery < time.Hour {
		wrong = append(wrong, errors.New("--provision-interval must be an hour at least, such as 24h"))
	}
	wrong = append(wrong, c.checkOAuth()...)
	if _, err := c.NewMailer(nil); err != nil {
		wrong = append(wrong, err)
	}
	if _, err := c.ReadPlans(); err != nil {
		wrong = append(wrong, err)
	}
	if _, err := c.ReadSTIRRoots(); err != nil {
		wrong = append(wrong, err)
	}
	wrong = append(wrong, c.checkSpeech()...)
	if !slices.Contains([]string{memory.IndexAuto, memory.IndexProcess, memory.IndexDatabase}, c.MemoryIndex) {
		wrong = append(wrong, fmt.Errorf("--memory-index %q must be auto, process or database", c.MemoryIndex))
	}
	if new(slog.Level).UnmarshalText([]byte(c.LogLevel)) != nil {
		wrong = append(wrong, fmt.Errorf("--log-level %q must be debug, info, warn or error", c.LogLevel))
	}
	wrong = append(append(wrong, c.checkApps()...), c.checkRestored()...)
	if c.LogFormat != "text" && c.LogFormat != "json" {
		wrong = append(wrong, fmt.Errorf("--log-format %q must be text or json", c.LogFormat))
	}
	return wrong
}

func (c *Config) checkOAuth() (wrong []error) {
	if c.OAuthRegister != "on" && c.OAuthRegister != "off" {
		wrong = append(wrong, fmt.Errorf("--oauth-register %q must be on or off", c.OAuthRegister))
	}
	if c.OAuthReuse > time.Minute {
		wrong = append(wrong, errors.New("--oauth-reuse-window must be 60s at most"))
	}
	for _, a := range SplitList(c.OAuthCallbacks) {
		if !IsWebURL(a) || !strings.HasPrefix(a, "https://") {
			wrong = append(wrong, fmt.Errorf("--oauth-callbacks: %q must be an address such as https://assistant.example.com/callback", a))
		}
	}
	return wrong
}

func (c *Config) checkSpeech() (wrong []error) {
	for name, use := range map[string]string{"transcriber": c.Transcriber, "summarizer": c.Summarizer, "embedder": c.Embedder,
		"voice": c.Voice} {
		may := "builtin, off, or the address of an OpenAI-compatible server"
		if name == "transcriber" {
			if dir, ok := strings.CutPrefix(use, speech.SherpaPrefix); ok && dir != "" {
				continue
			}
			may = "builtin, pocketsphinx, off, sherpa: and the folder of a model, or the address of an OpenAI-compatible server"
			if use == "pocketsphinx" {
				continue
			}
		}
		if use != "builtin" && use != "off" && !IsWebURL(use) {
			wrong = append(wrong, fmt.Errorf("--%s %q must be %s", name, use, may))
		}
	}
	return wrong
}

func (c *Config) checkRestored() []error {
	if slices.Contains([]string{"", "live", "copy"}, c.Restored) {
		return nil
	}
	return []error{fmt.Errorf("--restored %q must be live or copy, or empty", c.Restored)}
}

func (c *Config) givenApps() map[string]string {
	return map[string]string{"hubspot": c.HubSpotApp, "salesforce": c.SalesforceApp, "pipedrive": c.PipedriveApp, "zoho": c.ZohoApp,
		"dynamics": c.DynamicsApp, "zendesk": c.ZendeskApp}
}

// VendorApps returns the OAuth apps that the operator registered with CRM vendors, by provider.
func (c *Config) VendorApps() map[string]adapter.App {
	apps := map[string]adapter.App{}
	for name, text := range c.givenApps() {
		if id, secret, ok := strings.Cut(text, ":"); ok {
			apps[name] = adapter.App{ClientID: id, ClientSecret: secret}
		}
	}
	return apps
}

// checkApps returns an error for each app setting with a wrong form. The errors do not contain the secret value.
func (c *Config) checkApps() (wrong []error) {
	apps := c.VendorApps()
	for name, text := range c.givenApps() {
		if a := apps[name]; text != "" && (a.ClientID == "" || a.ClientSecret == "") {
			wrong = append(wrong, fmt.Errorf("--%s-app must be client-id:client-secret", name))
		}
	}
	return wrong
}

// IsWebURL reports whether text is an http or https URL with a host.
func IsWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// RTPPortRange returns the first and the last UDP port for audio. Both are 0 if the system chooses ports.
func (c *Config) RTPPortRange() (low, high int, err error) {
	a, b, ok := strings.Cut(c.RTPPorts, "-")
	low, err1 := strconv.Atoi(a)
	high, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || low < 0 || high > 65535 || low > high {
		return 0, 0, fmt.Errorf("--rtp-ports %q must be first-last, such as 20000-29999", c.RTPPorts)
	}
	return low, high, nil
}

// RateLimits returns the request limits of each credential.
func (c *Config) RateLimits() org.Limits {
	l := org.DefaultLimits
	l.ReadsPerMinute, l.WritesPerMinute, l.Burst, l.MemorySearchesPerSecond = c.RateReads, c.RateWrites, c.RateBurst, c.RateSearches
	return l
}

// AllowedTargets returns the private networks that outbound requests may reach.
func (c *Config) AllowedTargets() ([]netip.Prefix, error) {
	return ParseNetworks("allow-targets", c.AllowTargets)
}

// ParseNetworks returns the networks in a comma-separated list. The error names the setting.
func ParseNetworks(setting, text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, one := range SplitList(text) {
		p, err := netip.ParsePrefix(one)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q must be a network such as 10.0.0.0/8", setting, one)
		}
		all = append(all, p)
	}
	return all, nil
}
