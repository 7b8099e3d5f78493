package server

import (
	"bytes"
	"context"
	"encoding/xml"
	"strconv"
	"strings"
	"sync"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
)

// This file tells telephones which of their colleagues are rung or speak: the lamps of keys (busy lamp field, RFC 4235).

// presencesChanged is the bus subject on which people are published whose presence is another than before.
const presencesChanged = "changed.presence"

type people struct {
	org   string
	users []string
}

// lights are the lamps of keys that show what people do.
type lights struct {
	house *Platform
	sip   *sip.Server
	work  sync.WaitGroup
	stop  context.CancelFunc

	mu   sync.Mutex // guards seen
	seen map[string]light
}

// A light is the state of somebody's calls (RFC 4235 §3.7.1), as it was at a time.
type light struct {
	state string
	at    time.Time
}

const (
	dialogEvent = "dialog"
	dialogType  = "application/dialog-info+xml"
	// lightGood is how long a state is good for those of many telephones that are told of one change.
	lightGood = time.Second
	mostSeen  = 100_000
)

func newLights(h *Platform) *lights { return &lights{house: h, seen: map[string]light{}} }

// topic is what telephones subscribe to: the extension of somebody of their organisation. Who speaks with whom is not told.
func (l *lights) topic() sip.Topic {
	return sip.Topic{Event: dialogEvent, ContentType: dialogType, Number: numbered, Subject: l.subject,
		Body: func(ctx context.Context, subject string, resource sip.URI) ([]byte, bool, error) {
			state, err := l.state(ctx, subject)
			return dialogs(resource, state), err == nil && state != "", err
		}}
}

// subject is the person that an account means by an extension.
func (l *lights) subject(ctx context.Context, account string, resource sip.URI) (string, bool, error) {
	a, ok, err := l.house.devices.Account(ctx, account)
	if err != nil || !ok {
		return "", false, err
	}
	u, err := l.house.users.ByExtension(ctx, l.house.db.Read(ctx), a.OrgID, resource.User)
	if db.IsNone(err) {
		return "", false, nil
	}
	return a.OrgID + " " + u.ID, err == nil, err
}

// state is what somebody's telephones do; "" of somebody who is not there any more.
func (l *lights) state(ctx context.Context, subject string) (string, error) {
	l.mu.Lock()
	known, ok := l.seen[subject]
	l.mu.Unlock()
	if ok && time.Since(known.at) < lightGood {
		return known.state, nil
	}
	org, id, _ := strings.Cut(subject, " ")
	all, err := l.house.agents.Presences(ctx, l.house.db.Read(ctx), org, []string{id})
	if err != nil {
		return "", err
	}
	p, ok := all[id]
	switch {
	case !ok:
		return "", nil
	case p.Status == agent.Ringing:
		return "early", nil
	case p.Status == agent.Busy:
		return "confirmed", nil
	}
	return "terminated", nil
}

// start follows what changes until the context ends.
func (l *lights) start(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	changes := l.house.bus.Subscribe(presencesChanged, 4096)
	l.work.Go(func() {
		defer changes.Close()
		for {
			select {
			case m := <-changes.C:
				p := m.(people)
				for _, id := range p.users {
					l.changed(ctx, p.org+" "+id)
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// close waits until nobody is told anything any more.
func (l *lights) close() {
	if l.stop != nil {
		l.stop()
		l.work.Wait()
	}
}

// changed tells who watches somebody whose state is another than it was.
func (l *lights) changed(ctx context.Context, subject string) {
	if len(l.sip.Watched(dialogEvent, subject)) == 0 {
		return
	}
	l.mu.Lock()
	before := l.seen[subject].state
	delete(l.seen, subject)
	l.mu.Unlock()
	state, err := l.state(ctx, subject)
	if err != nil {
		l.house.log.Warn("lamps of keys not switched", "err", err)
		return
	}
	l.mu.Lock()
	if len(l.seen) >= mostSeen {
		clear(l.seen)
	}
	l.seen[subject] = light{state, time.Now()}
	l.mu.Unlock()
	if state != before {
		l.sip.Changed(dialogEvent, subject)
	}
}

// dialogs is the whole state of somebody's calls, as one dialog (RFC 4235 §4).
func dialogs(resource sip.URI, state string) []byte {
	var name, entity bytes.Buffer
	_ = xml.EscapeText(&name, []byte(resource.User))
	_ = xml.EscapeText(&entity, []byte(resource.String()))
	return []byte(`<?xml version="1.0"?>` + "\n" + `<dialog-info xmlns="urn:ietf:params:xml:ns:dialog-info" version="0" state="full" entity="` + entity.String() + `">` +
		"\n" + `<dialog id="` + name.String() + `" direction="recipient"><state>` + state + "</state></dialog>\n</dialog-info>\n")
}

// numbered writes the version of a state (RFC 4235 §4.1): one more with each notification of a subscription.
func numbered(body []byte, n uint32) []byte {
	return bytes.Replace(body, []byte(`version="0"`), []byte(`version="`+strconv.FormatUint(uint64(n), 10)+`"`), 1)
}
