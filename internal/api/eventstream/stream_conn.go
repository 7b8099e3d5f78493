package eventstream

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// streamConn is one open stream. One goroutine uses it.
type streamConn struct {
	*Service
	principal     access.Principal
	asked         []string // kinds of the request; none: all
	about         subject
	kinds         map[event.Kind]bool
	announcements *bus.Subscription
	webhookFormat bool  // the stream has the webhook format
	lastSequence  int64 // sequence of the last processed event
	seen          shownCalls
	write         func(to *bytes.Buffer, e event.Event)

	out     *http.ResponseController
	w       http.ResponseWriter
	pending bytes.Buffer
}

// followedKinds returns the kinds to subscribe to. nil, for the webhook format, excludes stream-only events.
func (f *streamConn) followedKinds() map[event.Kind]bool {
	if f.webhookFormat {
		return nil
	}
	return f.kinds
}

// serve sends events until the stream ends.
func (f *streamConn) serve(ctx context.Context, w http.ResponseWriter) {
	f.w, f.out = w, http.NewResponseController(w)
	setHeaders(w.Header())
	_ = f.out.SetReadDeadline(time.Time{}) // the limit on slow requests would end the stream
	defer func() { _ = f.out.SetWriteDeadline(time.Time{}) }()
	changes := f.cfg.Outbox.Bus.Subscribe(f.cfg.Changed, 1) // before anything is sent: a key may be revoked as soon as its stream is open
	defer changes.Close()
	ended := f.cfg.Outbox.Bus.Subscribe(access.SessionEnded(f.principal.KeyID), 1)
	defer ended.Close()
	// The id alone is not an event. It is the position for a client that loses the stream before the first event.
	f.pending.WriteString(": welcome\nid: " + strconv.FormatInt(f.lastSequence, 10) + "\n\n")
	if !f.send() || !f.catchUp(ctx) {
		return
	}
	beat, tick := time.NewTicker(f.cfg.Heartbeat), clock.NewTicker(pollInterval)
	defer beat.Stop()
	defer tick.Stop()
	for ok := true; ok; {
		select {
		case <-ctx.Done():
			return
		case <-f.stop:
			return
		case m := <-f.announcements.C:
			ok = f.receive(ctx, m)
		case <-tick.C:
			ok = f.poll(ctx)
		case <-changes.C:
			f.seen.forget()
			ok = f.revalidate(ctx)
		case <-ended.C:
			ok = f.revalidate(ctx)
		case <-beat.C:
			f.pending.WriteString(": \n\n")
			f.seen.forget()
			ok = f.revalidate(ctx) && f.send()
		}
	}
}

// revalidate returns false if the credential is not valid any more. It drops the kinds that the credential may no longer read.
func (f *streamConn) revalidate(ctx context.Context) bool {
	if f.cfg.Credentials.Revalidate(ctx, f.principal) != nil {
		return false
	}
	held, err := f.cfg.Credentials.StillHeld(ctx, f.principal.Holder())
	f.kinds = visibleKinds(held, f.asked)
	return err == nil
}

// receive processes an announcement and those queued behind it. If a sequence is missing, the outbox is read.
func (f *streamConn) receive(ctx context.Context, m any) bool {
	for {
		if e, ok := m.(event.Event); ok && e.OrgID == f.principal.OrgID {
			if e.Sequence > f.lastSequence+1 {
				return f.catchUp(ctx)
			}
			if (e.Sequence == 0 || e.Sequence == f.lastSequence+1) && !f.add(ctx, e) {
				return false
			}
		}
		select {
		case m = <-f.announcements.C:
		default:
			return f.send()
		}
	}
}

// poll sends events whose announcement was lost, or that another node stored. The streams of an organisation share the read that finds out
// whether there are any.
func (f *streamConn) poll(ctx context.Context) bool {
	org := f.principal.OrgID
	last, err := f.newest.Get(org, func() (int64, error) { return f.cfg.Outbox.Last(ctx, org) })
	return err == nil && (last <= f.lastSequence || f.catchUp(ctx))
}

// catchUp sends all events after the last one from the outbox.
func (f *streamConn) catchUp(ctx context.Context) bool {
	for {
		batch, err := f.cfg.Outbox.After(ctx, f.principal.OrgID, f.lastSequence)
		if err != nil {
			return false // the client reconnects and resumes
		}
		for _, e := range batch {
			if !f.add(ctx, e) {
				return false
			}
		}
		if !f.send() {
			return false
		}
		if len(batch) == 0 {
			return true
		}
	}
}

// add writes an event to the pending output if its kind and its call are visible. It returns false if that cannot be found out; then
// the client reconnects and resumes.
func (f *streamConn) add(ctx context.Context, e event.Event) bool {
	if f.kinds[e.Kind] && f.about.of(e) {
		shown, err := f.seen.shows(ctx, f.cfg.Outbox.DB.Read(ctx), f.principal, e)
		if err != nil {
			return false
		}
		if shown {
			f.write(&f.pending, e)
		}
	}
	if e.Sequence > 0 {
		f.lastSequence = e.Sequence
	}
	return true
}

// writeData writes an event's data. The end of a call is sent at once. Its enriched repetition is skipped, because
// recording and summary arrive as call.recording and call.transcription.
func writeData(to *bytes.Buffer, e event.Event) {
	if e.Audience != event.AudienceEnriched {
		writeMessage(to, e, e.Data())
	}
}

// WebhookMessage is an event in the webhook format.
type WebhookMessage struct {
	ID         string  `json:"id"` // sent as webhook-id
	Sequence   int64   `json:"sequence"`
	OccurredAt db.Time `json:"occurred_at"`
	Body       string  `json:"body"` // byte for byte
}

// writeWebhook returns a function that writes the webhook events for a timing of call.ended.
func writeWebhook(timing string) func(*bytes.Buffer, event.Event) {
	other := event.AudienceImmediate
	if timing == string(event.AudienceImmediate) {
		other = event.AudienceEnriched
	}
	return func(to *bytes.Buffer, e event.Event) {
		if e.Sequence == 0 || e.Audience == event.AudienceStream || e.Audience == other {
			return
		}
		data, err := event.Canonical(WebhookMessage{e.ID, e.Sequence, e.OccurredAt, e.Body})
		if err == nil { // cannot fail for strings and numbers
			writeMessage(to, e, string(data))
		}
	}
}

// writeMessage writes one event of the stream. A stored event has an id, with which the stream can be resumed.
func writeMessage(to *bytes.Buffer, e event.Event, data string) {
	if e.Sequence > 0 {
		to.WriteString("id: " + strconv.FormatInt(e.Sequence, 10) + "\n")
	}
	to.WriteString("event: " + string(e.Kind) + "\ndata: " + data + "\n\n")
}

// send writes the pending output. It returns false if the client has disconnected or does not read.
func (f *streamConn) send() bool {
	if f.pending.Len() == 0 {
		return true
	}
	_ = f.out.SetWriteDeadline(time.Now().Add(f.cfg.WriteTimeout))
	_, err := f.w.Write(f.pending.Bytes())
	if err == nil {
		err = f.out.Flush()
	}
	f.pending.Reset()
	return err == nil
}
