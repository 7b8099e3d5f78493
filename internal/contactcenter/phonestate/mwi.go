package phonestate

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
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/voicemail"
)

// Message waiting indication (MWI, RFC 3842): NOTIFY with the number of messages, for subscribers and for phones that never subscribe.

// MessageWaiting notifies phones of the number of messages in the mailbox of their user. Create it with NewMessageWaiting.
type MessageWaiting struct {
	cfg Config
	sip *sip.Server

	work sync.WaitGroup
	stop context.CancelFunc

	registrations chan string // accounts that registered

	mu   sync.Mutex        // guards sent
	sent map[string]string // last body sent to a phone that never subscribed, or refusesNotify, by its registration
}

const (
	summaryEvent = "message-summary"
	summaryType  = "application/simple-message-summary"
	// refusesNotify marks a phone that refused a NOTIFY without a subscription.
	refusesNotify = "-"
	// maxSent limits the phones in sent. When there are more, all are forgotten and notified once more than necessary.
	maxSent = 100_000
	// subscribeDelay is the time a phone has to subscribe after its registration before it gets an unsolicited NOTIFY.
	subscribeDelay = 2 * time.Second
	notifyTimeout  = 10 * time.Second
)

// NewMessageWaiting returns a MessageWaiting that is not started.
func NewMessageWaiting(c Config) *MessageWaiting {
	return &MessageWaiting{cfg: c, sent: map[string]string{}, registrations: make(chan string, 4096)}
}

// Topic returns the event package "message-summary". A phone may name the mailbox by its SIP user name, the extension, the user id or *97.
func (w *MessageWaiting) Topic() sip.EventPackage { return summaryPackage{w} }

// summaryPackage is the event package "message-summary".
type summaryPackage struct{ *MessageWaiting }

// Event returns the name of the event package.
func (w summaryPackage) Event() string { return summaryEvent }

// ContentType returns the type of its documents.
func (w summaryPackage) ContentType() string { return summaryType }

// ResolveSubject returns the account: a phone subscribes to the mailbox of its own user.
func (w summaryPackage) ResolveSubject(_ context.Context, account string, _ sipmsg.URI) (string, bool, error) {
	return account, true, nil
}

// Body returns the message counts of the mailbox.
func (w summaryPackage) Body(ctx context.Context, account string, resource sipmsg.URI) ([]byte, bool, error) {
	a, ok, err := w.cfg.Devices.Account(ctx, account)
	if err != nil || !ok {
		return nil, false, err
	}
	u, err := w.cfg.Directory.CachedUser(ctx, a.OrgID, a.UserID)
	if db.IsNone(err) || err == nil && !isMailbox(resource.User, a.Username, u) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	body, err := w.summary(ctx, a.OrgID, a.UserID, resource)
	return body, err == nil, err
}

// SetVersion returns the body: the event package has no versions.
func (w summaryPackage) SetVersion(body []byte, _ uint32) []byte { return body }

// isMailbox reports whether a name means the mailbox of a user.
func isMailbox(name, username string, u *user.User) bool {
	return name == "" || strings.EqualFold(name, username) || name == directory.ExtensionOf(u) || name == u.ID ||
		name == number.OwnMailboxCode
}

// summary returns the message counts of a user (RFC 3842 §5.2). The phone's message key dials the Message-Account.
func (w *MessageWaiting) summary(ctx context.Context, org, userID string, at sipmsg.URI) ([]byte, error) {
	c, err := w.cfg.Voicemail.Count(ctx, w.cfg.DB.Read(ctx), org, userID)
	waiting := "no"
	if c.New > 0 {
		waiting = "yes"
	}
	box := sipmsg.URI{Scheme: "sip", User: number.OwnMailboxCode, Host: at.Host, Port: at.Port}
	return fmt.Appendf(nil, "Messages-Waiting: %s\r\nMessage-Account: %s\r\nVoice-Message: %d/%d (%d/%d)\r\n", waiting, box, c.New, c.Old,
		c.UrgentNew, c.UrgentOld), err
}

// Start sends notifications through a SIP server until Close or the end of the context.
func (w *MessageWaiting) Start(ctx context.Context, s *sip.Server) {
	w.sip = s
	ctx, w.stop = context.WithCancel(ctx)
	changes := w.cfg.Bus.Subscribe(voicemail.Changed, 4096)
	w.work.Go(func() {
		defer changes.Close()
		for {
			select {
			case m := <-changes.C:
				w.work.Go(func() { w.changed(ctx, m.(voicemail.MailboxUser)) })
			case account := <-w.registrations:
				w.work.Go(func() { w.afterRegister(ctx, account) })
			case <-ctx.Done():
				return
			}
		}
	})
}

// Close stops the notifications and waits for those in progress.
func (w *MessageWaiting) Close() {
	if w.stop != nil {
		w.stop()
		w.work.Wait()
	}
}

// Registered queues a notification for a phone that registered. If the queue is full, the phone is notified at the next change only.
func (w *MessageWaiting) Registered(_, account string, all []sip.Binding) {
	if len(all) == 0 {
		return
	}
	select {
	case w.registrations <- account:
	default:
	}
}

// changed notifies every phone of a user.
func (w *MessageWaiting) changed(ctx context.Context, b voicemail.MailboxUser) {
	all, err := w.cfg.Devices.OfUser(ctx, w.cfg.DB.Read(ctx), b.Org, b.User)
	if err != nil {
		w.cfg.Log.Warn("message waiting not sent", "user", b.User, "err", err)
		return
	}
	for _, d := range all {
		subscribed := w.sip.NotifySubscribers(summaryEvent, d.SIP.Username)
		w.unsolicited(ctx, b, d.ID, d.SIP.Username, subscribed)
	}
}

// unsolicited notifies the phones of an account that did not subscribe.
func (w *MessageWaiting) unsolicited(ctx context.Context, box voicemail.MailboxUser, device, account string, subscribed []netip.AddrPort) {
	all, err := w.cfg.Directory.Contacts(ctx, device)
	if err != nil {
		w.cfg.Log.Warn("message waiting not sent", "account", account, "err", err)
		return
	}
	for _, b := range all {
		if b.Expires.After(time.Now()) && !slices.Contains(subscribed, b.Source) {
			w.work.Go(func() { w.notify(ctx, box, account, b) })
		}
	}
}

// afterRegister notifies a phone that registered and did not subscribe.
func (w *MessageWaiting) afterRegister(ctx context.Context, account string) {
	wait := time.NewTimer(subscribeDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return
	}
	a, ok, err := w.cfg.Devices.Account(ctx, account)
	if err != nil || !ok {
		return
	}
	w.unsolicited(ctx, voicemail.MailboxUser{Org: a.OrgID, User: a.UserID}, a.DeviceID, a.Username, w.sip.SubscriberAddrs(summaryEvent,
		a.Username))
}

// notify sends an unsolicited NOTIFY to a phone, unless it has the counts already or refused one. A new registration clears the refusal.
// A phone whose mailbox never had a message gets none.
func (w *MessageWaiting) notify(ctx context.Context, box voicemail.MailboxUser, account string, b sip.Binding) {
	body, err := w.summary(ctx, box.Org, box.User, sipmsg.URI{Host: w.cfg.SIPDomain})
	if err != nil {
		w.cfg.Log.Warn("message waiting not sent", "user", box.User, "err", err)
		return
	}
	key := b.Contact + " " + b.CallID
	if known := w.lastSent(key); known == refusesNotify || known == string(body) || known == "" && !w.mayShow(ctx, box, body) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	status, err := w.sip.NotifyWithBody(ctx, b, "sip:"+account+"@"+w.cfg.SIPDomain, summaryEvent, summaryType, body)
	switch {
	case err != nil: // no answer: the next change tries again
	case status < 300:
		w.setSent(key, string(body))
	case status != 401 && status != 407 && status < 500: // such as 481, 489, 405, 403
		w.setSent(key, refusesNotify)
	}
}

// mayShow reports whether a phone that was told nothing yet needs the counts: if messages wait, or if its light may be on from
// earlier ones.
func (w *MessageWaiting) mayShow(ctx context.Context, box voicemail.MailboxUser, body []byte) bool {
	if !strings.HasPrefix(string(body), "Messages-Waiting: no") {
		return true
	}
	ever, err := w.cfg.Voicemail.EverReceived(ctx, w.cfg.DB.Read(ctx), box.Org, box.User)
	if err != nil {
		w.cfg.Log.Warn("message waiting not sent", "user", box.User, "err", err)
	}
	return ever
}

// lastSent returns the last body sent to a registration, or refusesNotify.
func (w *MessageWaiting) lastSent(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[key]
}

// setSent remembers the last body sent to a registration, or refusesNotify.
func (w *MessageWaiting) setSent(key, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) >= maxSent {
		clear(w.sent)
	}
	w.sent[key] = value
}
