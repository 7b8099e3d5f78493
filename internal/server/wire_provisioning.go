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

// This file joins phone provisioning with the other services.

// joinProvision gives the device service the configuration templates.
func (p *Platform) joinProvision() {
	p.devices.Provisioner = device.ProvisioningHooks{Digest: p.seal.Digest, Base: func() string { return p.config.BaseURL },
		Templates: provisioning.Templates(), Template: provisioning.Template, Main: provisioning.Main, Event: provisioning.Event}
}

// provisioner returns the server of phone configurations. It needs the addresses of the SIP listeners.
func (s *Server) provisioner() *provisioning.Server {
	p := s.Platform
	p.devices.Provisioner.Base = s.provisionBase
	plain, _ := config.ParseNetworks("provision-plain", p.config.ProvisionPlain) // checked as the settings were read
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

// provisionBase is where phones fetch: the base URL if it is https, else the HTTPS listener if there is one.
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

// provisionHost is the host at which phones reach this machine.
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

// sipsPort is where phones register by TLS when it is not listened for here, but by something before this machine.
const sipsPort = 5061

// place is where a phone registers.
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
