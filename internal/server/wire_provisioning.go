package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"soniq/internal/config"
	"soniq/internal/platform/clock"
	"soniq/internal/protocol/sip/transport"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/provisioning"
)

// Connects phone provisioning with the other services.

// provisioner returns the server of phone configurations. It needs the addresses of the SIP listeners.
func (s *Server) provisioner() *provisioning.Server {
	p := s.Platform
	plain, _ := config.ParseNetworks("provision-plain", p.config.ProvisionPlain) // checked when the settings were read
	return provisioning.New(provisioning.Config{Devices: p.devices, Zones: p.orgs, Log: p.log, Registrar: s, Realm: p.config.SIPDomain,
		NTP: p.config.NTPServer, Interval: p.config.ProvisionEvery, Plain: plain})
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

// RegistrarAddress implements provisioning.Registrar: it returns the host and port for registration.
func (s *Server) RegistrarAddress(transport string) (host string, port int) {
	port = int(s.sip.Addr().Port())
	if transport == "tls" {
		port = sipsPort
		if a := s.sip.TLSAddr(); a.IsValid() {
			port = int(a.Port())
		}
	}
	return s.provisionHost(), port
}

// Connects phones with provisioning, SIP, trunks and presence.

// buildDevices constructs the service of phones.
func (p *Platform) buildDevices(now func() time.Time) {
	d := deviceDependencies{p}
	p.devices = device.New(device.Config{DB: p.db, Users: p.users, Sealer: p.seal, Outbox: p.outbox, Bus: p.bus, Clock: clock.Func(now),
		Domain: p.config.SIPDomain, Server: d, Templates: provisioning.Catalog{}, Emergency: d,
		WebSocket: p.config.WebSocketURL(), ICEServers: &p.config})
	p.devices.Observe(registrations{p})
}

// deviceDependencies implements the dependencies of package device. It reads the services of the platform at each call,
// because they are built later.
type deviceDependencies struct{ p *Platform }

// ProvisionBase implements device.Server.
func (d deviceDependencies) ProvisionBase() string {
	if d.p.server == nil {
		return d.p.config.BaseURL
	}
	return d.p.server.provisionBase()
}

// Notify implements device.Server.
func (d deviceDependencies) Notify(ctx context.Context, b device.Binding, aor, event string) (int, error) {
	if d.p.server == nil {
		return 0, errors.New("this process has no SIP server")
	}
	return d.p.server.sip.Notify(ctx, directory.BindingOf(b), aor, event)
}

// browserTokens implements transport.TokenVerifier.
type browserTokens struct{ p *Platform }

// UseToken implements transport.TokenVerifier.
func (b browserTokens) UseToken(ctx context.Context, token string) (l transport.TokenLogin, ok bool, err error) {
	login, ok, err := b.p.devices.UseToken(ctx, token)
	return transport.TokenLogin(login), ok, err
}

// CloseToken implements device.Server.
func (d deviceDependencies) CloseToken(username string) {
	if d.p.server != nil {
		d.p.server.sip.CloseToken(username)
	}
}

// HasEmergencyRoute implements device.Emergency.
func (d deviceDependencies) HasEmergencyRoute(ctx context.Context, org string) (bool, error) {
	routes, err := d.p.trunks.EmergencyRoutes(ctx, org, "112")
	return len(routes) > 0, err
}

// registrations publishes the presence of users whose phones register.
type registrations struct{ p *Platform }

// RegistrationChanged implements device.RegistrationObserver.
func (r registrations) RegistrationChanged(org, userID string) { r.p.agents.UserChanged(org, userID) }
