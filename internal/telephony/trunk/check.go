package trunk

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/platform/op"
)

var (
	kinds         = []string{"register", "ip", "peer"}
	carriages     = []string{"udp", "tcp", "tls"}
	srtpModes     = []string{"off", "preferred", "required"}
	callerIDModes = []string{"pai", "rpid", "from"}
	codecs        = []string{"pcmu", "pcma", "g722", "opus"}
)

var (
	hostForm    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	matchForm   = regexp.MustCompile(`^(\+?[0-9]{0,18})?$`)
	prependForm = regexp.MustCompile(`^\+?[0-9*#]{0,18}$`)
)

// The widest networks that a trunk may list, as prefix lengths. With a wider one, requests from phones would be taken
// for the carrier's.
const (
	widest4 = 16
	widest6 = 32
)

// checker collects the violations.
type checker []op.Violation

func (c *checker) want(ok bool, field, code, message string) {
	if !ok {
		*c = append(*c, op.Field(field, code, message))
	}
}

func (c *checker) one(field, value string, of []string) {
	c.want(slices.Contains(of, value), field, "invalid_value", "must be one of "+strings.Join(of, ", "))
}

// validate returns every violation of a trunk as it would be stored.
func (t Trunk) check() []op.Violation {
	var c checker
	c.want(strings.TrimSpace(t.Name) != "" && len([]rune(t.Name)) <= 120, "name", "invalid_length", "must have 1 to 120 characters")
	c.one("kind", t.Kind, kinds)
	c.want(validHost(t.Host), "host", "invalid_host", "must be a host name or an address, without port")
	c.want(t.Port >= 1 && t.Port <= 65_535, "port", "out_of_range", "must be 1 to 65535")
	c.one("transport", t.Transport, carriages)
	c.one("srtp", t.SRTP, srtpModes)
	c.one("caller_id_mode", t.CallerIDMode, callerIDModes)
	for _, codec := range t.Codecs {
		c.one("codecs", codec, codecs)
	}
	c.want(t.MaxChannels >= 0, "max_channels", "out_of_range", "must be 0 (no limit) or more")
	c.want(t.CallsPerSecond >= 0, "calls_per_second", "out_of_range", "must be 0 (no limit) or more")
	c.networks("allowed_ips", t.AllowedIPs)
	c.networks("inbound.allowed_ips", t.Inbound.AllowedIPs)
	c.credentials(t)
	for _, r := range t.PrefixRules {
		c.want(matchForm.MatchString(r.Match), "prefix_rules", "invalid_prefix", "match must be the beginning of a number, such as +49")
		c.want(prependForm.MatchString(r.Prepend), "prefix_rules", "invalid_prefix", "prepend must be digits")
		c.want(r.Strip >= 0 && r.Strip <= 20, "prefix_rules", "out_of_range", "strip must be 0 to 20")
	}
	return c
}

func (c *checker) networks(field string, all []string) {
	for _, text := range all {
		p, err := network(text)
		switch {
		case err != nil:
			c.want(false, field, "invalid_network", text+" is neither an address nor a network such as 192.0.2.0/24")
		case p.Addr().Is4() && p.Bits() < widest4, p.Addr().Is6() && p.Bits() < widest6:
			c.want(false, field, "network_too_wide", text+" is wider than /16 (IPv4) or /32 (IPv6)")
		}
	}
}

func (c *checker) credentials(t Trunk) {
	if t.Kind == "register" {
		c.want(t.Username != nil, "username", "required", "is needed to register")
		c.want(len(t.password) > 0, "password", "required", "is needed to register")
	}
	c.want(t.Inbound.Username == nil || *t.Inbound.Username != "" && len(*t.Inbound.Username) <= 120 && !strings.ContainsAny(*t.Inbound.Username, ":\"\\ \r\n"),
		"inbound.username", "invalid_username", "must have at most 120 characters and no colon, quote or space")
	c.want(t.Inbound.Username == nil || len(t.inboundPassword) > 0, "inbound.password", "required", "is needed beside inbound.username")
}

func validHost(h string) bool {
	if _, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
		return true
	}
	return hostForm.MatchString(h) && !strings.Contains(h, "..")
}
