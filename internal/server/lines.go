package server

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
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/trunk"
)

// This file keeps the lines to carriers: trunks that log in are logged in, and every trunk is asked now and then whether it
// is there.

// lines has one line per enabled trunk.
type lines struct {
	trunks *trunk.Service
	sip    *sip.Server
	bus    *bus.Bus
	log    *slog.Logger
	every  time.Duration // between probes of a trunk that answers; 0: none

	open map[string]*line
}

// line is one trunk that is looked after.
type line struct {
	trunk   trunk.Trunk
	version db.Time
	number  string // the only one it carries
	stop    context.CancelFunc
	over    sync.WaitGroup
}

const (
	linesEvery = time.Minute // a change that no message told of is found then
	probeLimit = 10 * time.Second
	lastWait   = 5 * time.Minute
)

// run follows the trunks until the context ends, and logs out then.
func (l *lines) run(ctx context.Context) {
	changes := l.bus.Subscribe(trunk.Changed, 16)
	defer changes.Close()
	tick := time.NewTicker(linesEvery)
	defer tick.Stop()
	defer l.closeAll()
	for {
		if err := l.follow(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("trunks not read; asked again in a minute", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changes.C:
		}
	}
}

// follow opens lines of new trunks, and closes those of trunks that are gone or have changed.
func (l *lines) follow(ctx context.Context) error {
	all, err := l.trunks.Enabled(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, t := range all {
		wanted[t.ID] = true
		number := ""
		if t.Kind == "register" {
			if number, err = l.trunks.SoleNumber(ctx, t); err != nil {
				return err
			}
		}
		if known := l.open[t.ID]; known == nil || !known.version.Equal(t.UpdatedAt.Time) || known.number != number {
			l.close(t.ID)
			l.open[t.ID] = l.start(ctx, t, number)
		}
	}
	for id := range l.open {
		if !wanted[id] {
			l.close(id)
		}
	}
	return nil
}

func (l *lines) start(ctx context.Context, t trunk.Trunk, number string) *line {
	ctx, stop := context.WithCancel(ctx)
	one := &line{trunk: t, version: t.UpdatedAt, number: number, stop: stop}
	if l.every > 0 {
		one.over.Go(func() { l.probe(ctx, t) })
	}
	if t.Kind == "register" {
		one.over.Go(func() { l.login(ctx, t, number) })
	}
	return one
}

func (l *lines) close(id string) {
	if one := l.open[id]; one != nil {
		one.stop()
		one.over.Wait()
		delete(l.open, id)
		l.trunks.Forget(id)
	}
}

func (l *lines) closeAll() {
	for _, one := range l.open {
		one.stop()
	}
	for id := range l.open {
		l.close(id)
	}
}

// probe asks a trunk again and again whether it is there; after a change of its answer sooner, to be sure.
func (l *lines) probe(ctx context.Context, t trunk.Trunk) {
	for wait, bad := l.every, false; pause(ctx, wait-wait/20+rand.N(wait/10+1)); {
		rtt, err := l.ask(ctx, t)
		if ctx.Err() != nil {
			return
		}
		l.trunks.Probed(t.ID, rtt, err)
		wait = l.every
		if now := err != nil; now || now != bad {
			wait, bad = l.every/6, now
		}
	}
}

// ask asks a trunk once whether it is there.
func (l *lines) ask(ctx context.Context, t trunk.Trunk) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	status, rtt, err := l.sip.Options(ctx, target(t), "sip:"+target(t).Host)
	return rtt, probeError(status, err)
}

// probeError says what is wrong with an answer to OPTIONS. Any answer shows that somebody is there, but 503 and time-outs.
func probeError(status int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("no answer to OPTIONS: %w", err)
	case status == 503, status == 408:
		return fmt.Errorf("OPTIONS was answered with %d", status)
	}
	return nil
}

// login keeps a trunk logged in until the context ends, and logs out then.
func (l *lines) login(ctx context.Context, t trunk.Trunk, number string) {
	r, err := l.register(ctx, t, number)
	if err != nil { // nothing that trying again helps
		l.loggedIn(t, sip.RegistrationStatus{Reason: err.Error(), Next: lastWait})
		return
	}
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
	defer cancel()
	_ = r.Unregister(last) // a carrier that does not answer forgets us by itself
}

func (l *lines) register(ctx context.Context, t trunk.Trunk, number string) (*sip.Registered, error) {
	username, password, err := l.trunks.Login(t)
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
	return l.sip.KeepRegistered(ctx, sip.Registration{Registrar: target(t), AOR: sip.URI{User: username, Host: domain}.String(), ContactUser: number,
		Credentials: sip.Credentials{Username: username, Password: password},
		OnStatus:    func(s sip.RegistrationStatus) { l.loggedIn(t, s) }})
}

func (l *lines) loggedIn(t trunk.Trunk, s sip.RegistrationStatus) {
	if s.Next == 0 { // logged out
		return
	}
	if s.Registered {
		l.trunks.Registered(t.ID, trunk.Registration{Status: "registered", ExpiresAt: db.At(time.Now().Add(s.Expires))})
		return
	}
	why := strings.TrimSpace(fmt.Sprintf("REGISTER: %d %s", s.Status, s.Reason))
	l.trunks.Registered(t.ID, trunk.Registration{Status: "failed", LastError: &why})
	l.log.Warn("trunk not logged in", "org", t.OrgID, "trunk", t.ID, "why", why)
}

// pause waits; false when the context ended first.
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
