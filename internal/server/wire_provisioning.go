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
func (h *Platform) joinProvision() {
	h.devices.Provisioner = device.Provisioner{Digest: h.seal.Digest, Base: func() string { return h.config.BaseURL },
		Templates: provisioning.Templates(), Template: provisioning.Template, Main: provisioning.Main, Event: provisioning.Event}
}

// provisioner returns the server of phone configurations. It needs the addresses of the SIP listeners.
func (n *Server) provisioner() *provisioning.Server {
	h := n.Platform
	h.devices.Provisioner.Base = n.provisionBase
	plain, _ := config.ParseNetworks("provision-plain", h.config.ProvisionPlain) // checked as the settings were read
	return provisioning.New(provisioning.Config{Devices: h.devices, Zone: h.orgs.Zone, Log: h.log, Now: time.Now, Place: n.place, Realm: h.config.SIPDomain,
		NTP: h.config.NTPServer, Interval: h.config.ProvisionEvery, Plain: func(r *http.Request) bool { return within(op.Source(r.Context()), plain) }})
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
func (n *Server) provisionBase() string {
	base := n.BaseURL()
	if strings.HasPrefix(base, "https://") || n.secure == nil {
		return base
	}
	a, err := netip.ParseAddrPort(n.secure.Addr().String())
	if err != nil {
		return base
	}
	host := a.Addr().String()
	if a.Addr().IsUnspecified() {
		host = n.provisionHost()
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(int(a.Port())))
}

// provisionHost is the host at which phones reach this machine.
func (n *Server) provisionHost() string {
	c := n.Platform.config
	if named := cmp.Or(c.ProvisionHost, c.PublicIP); named != "" {
		return named
	}
	if u, err := url.Parse(c.BaseURL); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return n.sip.Addr().Addr().String()
}

// sipsPort is where phones register by TLS when it is not listened for here, but by something before this machine.
const sipsPort = 5061

// place is where a phone registers.
func (n *Server) place(transport string) (host string, port int) {
	port = int(n.sip.Addr().Port())
	if transport == "tls" {
		port = sipsPort
		if a := n.sip.TLSAddr(); a.IsValid() {
			port = int(a.Port())
		}
	}
	return n.provisionHost(), port
}
