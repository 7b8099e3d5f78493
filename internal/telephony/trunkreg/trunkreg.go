// Package trunkreg registers trunks with their carriers (RFC 3261 §10) and probes every trunk by OPTIONS.
package trunkreg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/cluster"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/trunk"
)

// Config has what Registrations need. Every field but ProbeInterval is required.
type Config struct {
	Trunks        *trunk.Service
	SIP           *sip.Server
	Bus           *bus.Bus
	Log           *slog.Logger
	ProbeInterval time.Duration // between two OPTIONS requests to a trunk that answers; 0 sends none
}

// Registrations registers with carriers, and sends OPTIONS to every enabled trunk.
type Registrations struct {
	trunks *trunk.Service
	sip    *sip.Server
	bus    *bus.Bus
	log    *slog.Logger
	every  time.Duration

	open   map[string]*registration // by trunk; only the goroutine of Run uses it
	states chan lineState           // of this node's registrations, to be stored for other nodes
}

// lineState is the new state of a registration.
type lineState struct {
	trunk string
	trunk.Registration
}

// New returns registrations that do nothing until Run.
func New(c Config) *Registrations {
	return &Registrations{trunks: c.Trunks, sip: c.SIP, bus: c.Bus, log: c.Log, every: c.ProbeInterval, open: map[string]*registration{},
		states: make(chan lineState, 256)}
}

// registration is the registration and the probing of one trunk.
type registration struct {
	trunk   trunk.Trunk
	version db.Time
	number  string // the trunk's only number; empty if it has several
	held    bool   // this node registers the trunk, not another one
	stop    context.CancelFunc
	over    sync.WaitGroup
}

const (
	linesInterval   = 5 * time.Second // interval of reading the states of registrations of other nodes
	updateInterval  = time.Minute     // interval of reading all trunks, in case a change was not published
	requestTimeout  = 10 * time.Second
	retryAfterError = 5 * time.Minute
)

// Run registers and probes the enabled trunks until the context ends. Then it unregisters them and returns.
func (l *Registrations) Run(ctx context.Context) {
	changes := l.bus.Subscribe(trunk.Changed, 16)
	defer changes.Close()
	nodes := l.bus.Subscribe(cluster.Changed, 1)
	defer nodes.Close()
	tick := time.NewTicker(updateInterval)
	defer tick.Stop()
	lines := time.NewTicker(linesInterval)
	defer lines.Stop()
	defer l.closeAll()
	for {
		if err := l.update(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("trunks not read; retried in a minute", "err", err)
		}
		if !l.wait(ctx, [2]<-chan time.Time{tick.C, lines.C}, changes.C, nodes.C) {
			return
		}
	}
}

// wait exchanges states of registrations with other nodes until the trunks have to be read again: at the first of ticks, or after a
// change. The second of ticks is for reading states. It reports false if the context ended.
func (l *Registrations) wait(ctx context.Context, ticks [2]<-chan time.Time, changes, nodes <-chan any) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case s := <-l.states:
			if err := l.trunks.StoreLine(ctx, s.trunk, s.Registration); err != nil && ctx.Err() == nil {
				l.log.Warn("state of a registration not stored for other nodes", "trunk", s.trunk, "err", err)
			}
		case <-ticks[0]:
			return true
		case <-ticks[1]:
			l.readLines(ctx)
		case <-changes:
			return true
		case <-nodes:
			return true
		}
	}
}

// readLines reads the states of the registrations that other nodes keep.
func (l *Registrations) readLines(ctx context.Context) {
	for id, one := range l.open {
		if one.held || one.trunk.Kind != "register" {
			continue
		}
		if err := l.trunks.ReadLine(ctx, id); err != nil && ctx.Err() == nil {
			l.log.Warn("state of a registration not read", "trunk", id, "err", err)
		}
	}
}

// update starts new trunks, and stops trunks that are gone or have changed.
func (l *Registrations) update(ctx context.Context) error {
	all, err := l.trunks.Enabled(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, t := range all {
		wanted[t.ID] = true
		if err := l.updateTrunk(ctx, t); err != nil {
			return err
		}
	}
	for id := range l.open {
		if !wanted[id] {
			l.release(id)
		}
	}
	return nil
}

// updateTrunk starts a trunk anew if it has changed, or if this node begins or ceases to hold its line.
func (l *Registrations) updateTrunk(ctx context.Context, t trunk.Trunk) (err error) {
	number, held := "", false
	if t.Kind == "register" {
		if number, err = l.trunks.SoleNumber(ctx, t); err != nil {
			return err
		}
		if held, err = l.trunks.HoldLine(ctx, t.ID); err != nil {
			return err
		}
	}
	known := l.open[t.ID]
	if known == nil || !known.version.Equal(t.UpdatedAt.Time) || known.number != number || known.held != held {
		l.close(t.ID)
		l.open[t.ID] = l.start(ctx, t, number, held)
	}
	if t.Kind == "register" && !held {
		return l.trunks.ReadLine(ctx, t.ID)
	}
	return nil
}

func (l *Registrations) start(ctx context.Context, t trunk.Trunk, number string, held bool) *registration {
	ctx, stop := context.WithCancel(ctx)
	one := &registration{trunk: t, version: t.UpdatedAt, number: number, held: held, stop: stop}
	if l.every > 0 {
		one.over.Go(func() { l.probeAlways(ctx, t) })
	}
	if held {
		one.over.Go(func() { l.keepRegistered(ctx, t, number) })
	}
	return one
}

func (l *Registrations) close(id string) {
	if one := l.open[id]; one != nil {
		one.stop()
		one.over.Wait()
		delete(l.open, id)
		l.trunks.Forget(id)
	}
}

// release stops a trunk, and lets another node register it.
func (l *Registrations) release(id string) {
	held := l.open[id].held
	l.close(id)
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := l.trunks.ReleaseLine(ctx, id); err != nil {
		l.log.Warn("line of a trunk not released; another node takes it when this one has left", "trunk", id, "err", err)
	}
}

func (l *Registrations) closeAll() {
	for _, one := range l.open {
		one.stop()
	}
	for id := range l.open {
		l.release(id)
	}
}

// probeAlways sends OPTIONS at the interval, and six times as often while the trunk fails and once after its state has changed.
func (l *Registrations) probeAlways(ctx context.Context, t trunk.Trunk) {
	for wait, bad := l.every, false; pause(ctx, wait-wait/20+rand.N(wait/10+1)); {
		rtt, err := l.Probe(ctx, t)
		if ctx.Err() != nil {
			return
		}
		l.trunks.RecordProbe(t.ID, rtt, err)
		wait = l.every
		if now := err != nil; now || now != bad {
			wait, bad = l.every/6, now
		}
	}
}

// Probe sends one OPTIONS request and returns the round-trip time. Any answer except 408 and 503 counts as reachable.
func (l *Registrations) Probe(ctx context.Context, t trunk.Trunk) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	status, rtt, err := l.sip.SendOptions(ctx, Target(t), "sip:"+Target(t).Host)
	return rtt, probeError(status, err)
}

// probeError returns what is wrong with an answer to OPTIONS, or nil.
func probeError(status int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("no answer to OPTIONS: %w", err)
	case status == 503, status == 408:
		return fmt.Errorf("OPTIONS was answered with %d", status)
	}
	return nil
}

// keepRegistered keeps a trunk registered until the context ends, and unregisters it then.
func (l *Registrations) keepRegistered(ctx context.Context, t trunk.Trunk, number string) {
	r, err := l.register(ctx, t, number)
	if err != nil { // a retry would fail in the same way
		l.statusChanged(t, sip.RegistrationStatus{Reason: err.Error(), NextAttempt: retryAfterError})
		return
	}
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	_ = r.Unregister(last) // without an answer the registration expires
}

func (l *Registrations) register(ctx context.Context, t trunk.Trunk, number string) (*sip.ClientRegistration, error) {
	username, password, err := l.trunks.OutboundCredentials(t)
	if err != nil {
		return nil, err
	}
	if username == "" {
		return nil, errors.New("the trunk has no user name and password")
	}
	domain := strings.Trim(t.Host, "[]")
	if t.FromDomain != nil {
		domain = *t.FromDomain
	}
	return l.sip.KeepRegistered(ctx, sip.RegistrationConfig{Registrar: Target(t),
		AOR: sipmsg.URI{User: username, Host: domain}.String(), ContactUser: number,
		Credentials: digest.Credentials{Username: username, Password: password},
		OnStatus:    func(s sip.RegistrationStatus) { l.statusChanged(t, s) }})
}

func (l *Registrations) statusChanged(t trunk.Trunk, s sip.RegistrationStatus) {
	if s.NextAttempt == 0 { // unregistered
		return
	}
	if s.Registered {
		l.setState(t.ID, trunk.Registration{Status: "registered", ExpiresAt: db.At(time.Now().Add(s.Expires))})
		return
	}
	why := strings.TrimSpace(fmt.Sprintf("REGISTER: %d %s", s.Status, s.Reason))
	l.setState(t.ID, trunk.Registration{Status: "failed", LastError: &why})
	l.log.Warn("trunk not registered", "org", t.OrgID, "trunk", t.ID, "why", why)
}

// setState sets the state of a registration here, and hands it to Run for the other nodes. It does not block: under a burst, other
// nodes learn the next state.
func (l *Registrations) setState(id string, r trunk.Registration) {
	l.trunks.SetRegistration(id, r)
	select {
	case l.states <- lineState{id, r}:
	default:
	}
}

// pause waits for d. It reports false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
