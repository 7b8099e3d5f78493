package trunk

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

var (
	kinds         = []string{"register", "ip", "peer"}
	transports    = []string{"udp", "tcp", "tls"}
	directions    = []string{"inbound", "outbound", "both"}
	srtpModes     = []string{"off", "preferred", "required"}
	callerIDModes = []string{"pai", "rpid", "from"}
	codecs        = []string{"pcmu", "pcma", "g722", "opus"}
)

var (
	hostPattern    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	matchPattern   = regexp.MustCompile(`^(\+?[0-9]{0,18})?$`)
	prependPattern = regexp.MustCompile(`^\+?[0-9*#]{0,18}$`)
)

// The widest networks that a trunk may list, as prefix lengths. With a wider one, requests from phones would be taken
// for the carrier's.
const (
	minPrefixIPv4 = 16
	minPrefixIPv6 = 32
)

// checker collects the violations.
type checker []op.Violation

func (c *checker) require(ok bool, field, code, message string) {
	if !ok {
		*c = append(*c, op.Field(field, code, message))
	}
}

func (c *checker) requireOneOf(field, value string, of []string) {
	c.require(slices.Contains(of, value), field, "invalid_value", "must be one of "+strings.Join(of, ", "))
}

// validate returns every violation of a trunk as it would be stored.
func (t Trunk) validate() []op.Violation {
	var c checker
	c.require(strings.TrimSpace(t.Name) != "" && len([]rune(t.Name)) <= 120, "name", "invalid_length", "must have 1 to 120 characters")
	c.requireOneOf("kind", t.Kind, kinds)
	c.require(validHost(t.Host), "host", "invalid_host", "must be a host name or an address, without port")
	c.require(t.Port >= 1 && t.Port <= 65_535, "port", "out_of_range", "must be 1 to 65535")
	c.requireOneOf("transport", t.Transport, transports)
	c.requireOneOf("direction", t.Direction, directions)
	c.requireOneOf("srtp", t.SRTP, srtpModes)
	c.requireOneOf("caller_id_mode", t.CallerIDMode, callerIDModes)
	c.require(!t.AllowRefer || t.Kind == "peer", "allow_refer", "invalid_value", "is for trunks of kind peer")
	for _, codec := range t.Codecs {
		c.requireOneOf("codecs", codec, codecs)
	}
	c.require(t.MaxChannels >= 0, "max_channels", "out_of_range", "must be 0 (no limit) or more")
	c.require(t.CallsPerSecond >= 0, "calls_per_second", "out_of_range", "must be 0 (no limit) or more")
	c.networks("allowed_ips", t.AllowedIPs)
	c.networks("inbound.allowed_ips", t.Inbound.AllowedIPs)
	c.credentials(t)
	for _, r := range t.PrefixRules {
		c.require(matchPattern.MatchString(r.Match), "prefix_rules", "invalid_prefix",
			"match must be the beginning of a number, such as +49")
		c.require(prependPattern.MatchString(r.Prepend), "prefix_rules", "invalid_prefix", "prepend must be digits")
		c.require(r.Strip >= 0 && r.Strip <= 20, "prefix_rules", "out_of_range", "strip must be 0 to 20")
	}
	return c
}

// violations returns every violation of a new or changed trunk. The host is checked if it is new: an operator's list may
// have changed since.
func (s *Service) violations(t Trunk, old *Trunk) []op.Violation {
	c := checker(t.validate())
	if old == nil || old.Host != t.Host {
		c.host(s.hosts, t.Host)
	}
	return c
}

func (c *checker) networks(field string, all []string) {
	for _, text := range all {
		p, err := network(text)
		switch {
		case err != nil:
			c.require(false, field, "invalid_network", text+" is neither an address nor a network such as 192.0.2.0/24")
		case p.Addr().Is4() && p.Bits() < minPrefixIPv4, p.Addr().Is6() && p.Bits() < minPrefixIPv6:
			c.require(false, field, "network_too_wide", text+" is wider than /16 (IPv4) or /32 (IPv6)")
		}
	}
}

func (c *checker) credentials(t Trunk) {
	if t.Kind == "register" {
		c.require(t.Username != nil, "username", "required", "is needed to register")
		c.require(len(t.password) > 0, "password", "required", "is needed to register")
	}
	c.require(t.Inbound.Username == nil || *t.Inbound.Username != "" && len(*t.Inbound.Username) <= 120 &&
		!strings.ContainsAny(*t.Inbound.Username, ":\"\\ \r\n"),
		"inbound.username", "invalid_username", "must have at most 120 characters and no colon, quote or space")
	c.require(t.Inbound.Username == nil || len(t.inboundPassword) > 0, "inbound.password", "required", "is needed beside inbound.username")
}

// host adds the violation of a host to which no request may be sent.
func (c *checker) host(hosts Hosts, host string) {
	if hosts == nil || !validHost(host) {
		return
	}
	var f *egress.Fault
	if errors.As(hosts.CheckHost(strings.Trim(host, "[]")), &f) {
		c.require(false, "host", f.Code, f.Message)
	}
}

func validHost(h string) bool {
	if _, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
		return true
	}
	return hostPattern.MatchString(h) && !strings.Contains(h, "..")
}
