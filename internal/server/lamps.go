package server

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/voicemail"
)

// This file tells telephones how many messages their users have (RFC 3842).

// lamps switches the message lamps of telephones.
type lamps struct {
	house *Platform
	dir   *directory
	sip   *sip.Server

	work sync.WaitGroup
	stop context.CancelFunc

	asked chan string // accounts that registered

	mu   sync.Mutex        // guards told
	told map[string]string // what a telephone that never subscribed was last told, or that it wants to know nothing, by its registration
}

const (
	summaryEvent = "message-summary"
	summaryType  = "application/simple-message-summary"
	// deaf is kept in place of what a telephone was told that refuses to be told anything without subscribing.
	deaf = "-"
	// mostTold is how many telephones are remembered; when there are more, all are forgotten, and told once more than need be.
	mostTold = 100_000
	// lampDelay is how long a telephone that registered has to subscribe before it is told unasked.
	lampDelay = 2 * time.Second
	lampTime  = 10 * time.Second
)

func newLamps(h *Platform, d *directory) *lamps {
	return &lamps{house: h, dir: d, told: map[string]string{}, asked: make(chan string, 4096)}
}

// topic is what telephones subscribe to: the mailbox of their user, by whatever name of theirs.
func (l *lamps) topic() sip.Topic {
	return sip.Topic{Event: summaryEvent, ContentType: summaryType, Body: func(ctx context.Context, account string, resource sip.URI) ([]byte, bool, error) {
		a, ok, err := l.house.devices.Account(ctx, account)
		if err != nil || !ok {
			return nil, false, err
		}
		u, err := l.dir.person(ctx, a.OrgID, a.UserID)
		if db.IsNone(err) || err == nil && !named(resource.User, a.Username, u) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		body, err := l.summary(ctx, a.OrgID, a.UserID, resource)
		return body, err == nil, err
	}}
}

// named tells whether a name means the mailbox of a user.
func named(name, username string, u *user.User) bool {
	return name == "" || strings.EqualFold(name, username) || name == extension(u) || name == u.ID || name == number.OwnMailbox
}

// summary is what a telephone is told of its user's messages (RFC 3842 §5.2); its message key dials the account, where it subscribed.
func (l *lamps) summary(ctx context.Context, org, userID string, at sip.URI) ([]byte, error) {
	c, err := l.house.voicemail.Count(ctx, l.house.db.Read(ctx), org, userID)
	waiting := "no"
	if c.New > 0 {
		waiting = "yes"
	}
	box := sip.URI{Scheme: "sip", User: number.OwnMailbox, Host: at.Host, Port: at.Port}
	return fmt.Appendf(nil, "Messages-Waiting: %s\r\nMessage-Account: %s\r\nVoice-Message: %d/%d (%d/%d)\r\n", waiting, box, c.New, c.Old, c.UrgentNew, c.UrgentOld), err
}

// start follows what changes until the context ends.
func (l *lamps) start(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	changes := l.house.bus.Subscribe(voicemail.Changed, 4096)
	l.work.Go(func() {
		defer changes.Close()
		for {
			select {
			case m := <-changes.C:
				l.work.Go(func() { l.changed(ctx, m.(voicemail.Box)) })
			case account := <-l.asked:
				l.work.Go(func() { l.welcome(ctx, account) })
			case <-ctx.Done():
				return
			}
		}
	})
}

// close waits until nobody is told anything any more.
func (l *lamps) close() {
	if l.stop != nil {
		l.stop()
		l.work.Wait()
	}
}

// registered notes that a telephone registered; where too many do at once, some are told at the next change only.
func (l *lamps) registered(account string) {
	select {
	case l.asked <- account:
	default:
	}
}

// changed tells every telephone of a user.
func (l *lamps) changed(ctx context.Context, b voicemail.Box) {
	all, err := l.house.devices.OfUser(ctx, l.house.db.Read(ctx), b.Org, b.User)
	if err != nil {
		l.house.log.Warn("message lamps not switched", "user", b.User, "err", err)
		return
	}
	for _, d := range all {
		watched := l.sip.Changed(summaryEvent, d.SIP.Username)
		l.unasked(ctx, b, d.ID, d.SIP.Username, watched)
	}
}

// unasked tells the telephones of an account that did not subscribe.
func (l *lamps) unasked(ctx context.Context, box voicemail.Box, device, account string, watched []netip.AddrPort) {
	all, err := l.dir.Contacts(ctx, device)
	if err != nil {
		l.house.log.Warn("message lamps not switched", "account", account, "err", err)
		return
	}
	for _, b := range all {
		if b.Expires.After(time.Now()) && !slices.Contains(watched, b.Source) {
			l.work.Go(func() { l.tell(ctx, box, account, b) })
		}
	}
}

// welcome tells a telephone that registered and did not subscribe.
func (l *lamps) welcome(ctx context.Context, account string) {
	wait := time.NewTimer(lampDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return
	}
	a, ok, err := l.house.devices.Account(ctx, account)
	if err != nil || !ok {
		return
	}
	l.unasked(ctx, voicemail.Box{Org: a.OrgID, User: a.UserID}, a.DeviceID, a.Username, l.sip.Watched(summaryEvent, a.Username))
}

// tell tells one telephone that never subscribed, unless it knows or does not want to. A telephone that registers anew is asked again.
func (l *lamps) tell(ctx context.Context, box voicemail.Box, account string, b sip.Binding) {
	body, err := l.summary(ctx, box.Org, box.User, sip.URI{Host: l.house.config.SIPDomain})
	if err != nil {
		l.house.log.Warn("message lamp not switched", "user", box.User, "err", err)
		return
	}
	key := b.Contact + " " + b.CallID
	if known := l.last(key); known == deaf || known == string(body) || known == "" && strings.HasPrefix(string(body), "Messages-Waiting: no") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lampTime)
	defer cancel()
	status, err := l.sip.NotifyOf(ctx, b, "sip:"+account+"@"+l.house.config.SIPDomain, summaryEvent, summaryType, body)
	switch {
	case err != nil: // nobody answered: the next change is another try
	case status < 300:
		l.keep(key, string(body))
	case status != 401 && status != 407 && status < 500: // 481, 489, 405, 403 and their like
		l.keep(key, deaf)
	}
}

func (l *lamps) last(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[key]
}

func (l *lamps) keep(key, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.told) >= mostTold {
		clear(l.told)
	}
	l.told[key] = value
}
