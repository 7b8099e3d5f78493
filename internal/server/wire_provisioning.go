package server

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"soniq/internal/config"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/provisioning"
)

// Connects phone provisioning with the other services.

// wireProvisioning gives the device service the configuration templates.
func (p *Platform) wireProvisioning() {
	p.devices.Provisioner = device.ProvisioningHooks{Digest: p.seal.Digest, Base: func() string { return p.config.BaseURL },
		Templates: provisioning.Templates(), Template: provisioning.Template, Main: provisioning.Main, Event: provisioning.Event}
}

// provisioner returns the server of phone configurations. It needs the addresses of the SIP listeners.
func (s *Server) provisioner() *provisioning.Server {
	p := s.Platform
	p.devices.Provisioner.Base = s.provisionBase
	plain, _ := config.ParseNetworks("provision-plain", p.config.ProvisionPlain) // checked when the settings were read
	return provisioning.New(provisioning.Config{Devices: p.devices, Zone: p.orgs.Zone, Log: p.log, Now: time.Now, RegistrarAddress: s.place, Realm: p.config.SIPDomain,
		NTP: p.config.NTPServer, Interval: p.config.ProvisionEvery, AllowPlain: func(r *http.Request) bool { return within(op.ClientAddress(r.Context()), plain) }})
}

func within(a netip.Addr, all []netip.Prefix) bool {
	for _, p := range all {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// provisionBase returns the URL from which phones fetch: the base URL if it is https, else the HTTPS listener if
// there is one.
func (s *Server) provisionBase() string {
	base := s.BaseURL()
	if strings.HasPrefix(base, "https://") || s.secure == nil {
		return base
	}
	a, err := netip.ParseAddrPort(s.secure.Addr().String())
	if err != nil {
		return base
	}
	host := a.Addr().String()
	if a.Addr().IsUnspecified() {
		host = s.provisionHost()
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(int(a.Port())))
}

// provisionHost returns the host name by which phones reach this machine.
func (s *Server) provisionHost() string {
	c := s.Platform.config
	if named := cmp.Or(c.ProvisionHost, c.PublicIP); named != "" {
		return named
	}
	if u, err := url.Parse(c.BaseURL); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return s.sip.Addr().Addr().String()
}

// sipsPort is the port for registration over TLS if a proxy in front of this server terminates TLS.
const sipsPort = 5061

// place returns the host and port for registration.
func (s *Server) place(transport string) (host string, port int) {
	port = int(s.sip.Addr().Port())
	if transport == "tls" {
		port = sipsPort
		if a := s.sip.TLSAddr(); a.IsValid() {
			port = int(a.Port())
		}
	}
	return s.provisionHost(), port
}
