package contact

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
)

// popLimit bounds the wait of a screen pop for connected systems. With the time to deliver it, the pop arrives within
// 300 ms.
const popLimit = 200 * time.Millisecond

// CallHistory is the data of earlier calls and the memory of a number.
type CallHistory struct {
	CallsTotal     int
	LastCall       *LastCall
	OpenItems      []string
	SentimentTrend *string
	MemorySummary  *string
}

// LastCall is the previous call.
type LastCall struct {
	ID        string      `json:"id"`
	At        db.Time     `json:"at"`
	AISummary *string     `json:"ai_summary" doc:"With memory:read"`
	Agent     *call.Agent `json:"agent"`
}

// ScreenPop is the data shown to an agent about a caller.
type ScreenPop struct {
	Phone          string         `json:"phone"`
	CallID         *string        `json:"call_id"`
	Contact        *ContactLookup `json:"contact"`
	Complete       bool           `json:"complete" doc:"False while connected systems have not answered"`
	Tags           []string       `json:"tags" nullable:"false"`
	VIP            bool           `json:"vip"`
	DoNotCall      bool           `json:"do_not_call"`
	OpenItems      []string       `json:"open_items" nullable:"false" doc:"What was promised; with memory:read"`
	LastCall       *LastCall      `json:"last_call"`
	CallsTotal     int            `json:"calls_total"`
	SentimentTrend *string        `json:"sentiment_trend" enum:"improving,steady,declining,unknown" doc:"With memory:read"`
	MemorySummary  *string        `json:"memory_summary" doc:"With memory:read"`
	Queue          *call.Named    `json:"queue"`
	LookupMS       int            `json:"lookup_ms"`
	Sources        []SourceStatus `json:"sources" nullable:"false"`
}

// PopIn is the request of contacts.screen_pop.
type PopIn struct {
	Phone  string `query:"phone" maxLength:"60" doc:"E.164, as it is dialled in the organisation's country, or anonymous" example:"+14155550100"`
	CallID string `query:"call_id" maxLength:"40" doc:"The call it is for; without phone, the number it is with. Beside phone, a call that is not known is ignored"`
}

// ScreenPop returns the data about a caller. An unknown caller is not an error.
func (s *Service) ScreenPop(ctx context.Context, in *PopIn) (*op.Out[ScreenPop], error) {
	began, org := time.Now(), access.Org(ctx)
	phone, queue, err := s.popTarget(ctx, org, in)
	if err != nil {
		return nil, err
	}
	p := ScreenPop{Phone: phone, CallID: ptr(in.CallID), Complete: true, Tags: []string{}, OpenItems: []string{}, Queue: queue,
		Sources: []SourceStatus{}}
	country, err := s.country(ctx)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	if a, err := parseLookupKey(org, phone, "", country); err == nil {
		if err := s.fillPop(ctx, a, country, &p); err != nil {
			return nil, err
		}
	}
	p.LookupMS = millis(time.Since(began))
	return op.OK(p)
}

// popTarget returns the number and the queue of a request.
func (s *Service) popTarget(ctx context.Context, org string, in *PopIn) (phone string, queue *call.Named, err error) {
	if in.Phone == "" && in.CallID == "" {
		return "", nil, op.Invalid(op.Field("phone", "required", "give phone or call_id"))
	}
	if in.CallID == "" {
		return number.FromURL(in.Phone), nil, nil
	}
	phone, err = s.cfg.Calls.CallNumber(ctx, org, in.CallID)
	if err == nil {
		queue, err = s.queue(ctx, org, in.CallID)
	}
	if db.IsNone(err) {
		queue, err = nil, op.Invalid(op.Field("call_id", "not_found", "no such call"))
		if in.Phone != "" {
			err = nil // a phone that rings may know its call before the call is stored
		}
	}
	if in.Phone != "" {
		phone = number.FromURL(in.Phone)
	}
	return phone, queue, err
}

// queue returns the queue through which a call came; nil if there is none.
func (s *Service) queue(ctx context.Context, org, callID string) (*call.Named, error) {
	if callID == "" {
		return nil, nil
	}
	return s.cfg.Calls.CallQueue(ctx, org, callID)
}

func (s *Service) fillPop(ctx context.Context, a lookupKey, country string, p *ScreenPop) error {
	began := time.Now()
	f, cached, _, err := s.resolve(ctx, a, country, popLimit, false)
	if err != nil {
		return err
	}
	p.Phone, p.Complete, p.Sources = a.phone(), f.complete, f.sources
	if len(f.matches) > 0 {
		m := f.matches[0]
		p.Contact, p.VIP, p.DoNotCall = f.response(a, cached, time.Since(began)), m.vip, m.doNotCall
		p.Tags = append(p.Tags, m.tags...)
	}
	if !a.number.isComplete() {
		return nil
	}
	who, _ := access.From(ctx)
	past, err := s.cfg.Calls.CallHistory(ctx, a.org, a.number.e164, access.MemoryRead.Need().MetBy(who.Scopes))
	if err != nil {
		return fmt.Errorf("find earlier calls: %w", err)
	}
	p.CallsTotal, p.LastCall, p.SentimentTrend, p.MemorySummary = past.CallsTotal, past.LastCall, past.SentimentTrend, past.MemorySummary
	p.OpenItems = append(p.OpenItems, past.OpenItems...)
	return nil
}

// Ring is a call that starts to ring at a user.
type Ring struct {
	Org, CallID, UserID, Phone string

	// Direct means that the call did not come through a queue. If it is false, the queue is looked up.
	Direct bool

	TransferredBy *event.Named // the transferring user; nil if the call is not a transfer

	queue *call.Named
}

// Ringing publishes a screen pop to the live stream: after at most popLimit, and again when late answers of systems
// have arrived. It returns at once.
func (s *Service) Ringing(r Ring) {
	if s.stopCtx.Err() != nil {
		return
	}
	s.running.Go(func() {
		if err := s.ringing(s.stopCtx, r); err != nil && s.stopCtx.Err() == nil {
			s.cfg.Log.Warn("screen pop not published", "org", r.Org, "call", r.CallID, "err", err)
		}
	})
}

func (s *Service) ringing(ctx context.Context, r Ring) error {
	began := time.Now()
	o, err := s.cfg.Orgs.Get(ctx, r.Org)
	if err != nil {
		return err
	}
	if !r.Direct {
		if r.queue, err = s.queue(ctx, r.Org, r.CallID); err != nil {
			s.cfg.Log.Warn("queue of the call not found; screen pop is sent without it", "org", r.Org, "call", r.CallID, "err",
				err) // continue: the caller's identity matters more
		}
	}
	a, err := parseLookupKey(r.Org, r.Phone, "", o.Country)
	if err != nil || !a.number.isComplete() {
		return s.publishPop(r, r.Phone, &lookupResult{complete: true}, began)
	}
	f, _, late, err := s.resolve(ctx, a, o.Country, popLimit, false)
	if err != nil {
		return err
	}
	if err = s.publishPop(r, a.number.e164, f, began); err != nil || late == nil {
		return s.identifyCall(ctx, r, f, err)
	}
	<-late.done
	f = late.result()
	f.complete = true // all sources have answered or failed
	return s.identifyCall(ctx, r, f, s.publishPop(r, a.number.e164, f, began))
}

// identifyCall reports the contact of the call, if there is one, to the observers.
func (s *Service) identifyCall(ctx context.Context, r Ring, f *lookupResult, err error) error {
	c := f.contact()
	if err != nil || c == nil {
		return err
	}
	return observe.Each(s.observers.identifications, func(o IdentificationObserver) error {
		return o.CallIdentified(ctx, r.Org, r.CallID, *c)
	})
}

// publishPop publishes the screen pop to the live stream. The event is ephemeral: GET /contacts/screen-pop returns
// the same data.
func (s *Service) publishPop(r Ring, phone string, f *lookupResult, began time.Time) error {
	pop := event.ScreenPop{Phone: phone, CallID: ptr(r.CallID), UserID: ptr(r.UserID), Complete: f.complete,
		LookupMS: millis(time.Since(began)), At: db.At(s.cfg.Clock.Now()), TransferredBy: r.TransferredBy}
	if r.queue != nil {
		pop.Queue = &event.Named{ID: r.queue.ID, Name: r.queue.Name}
	}
	if len(f.matches) > 0 {
		m := f.matches[0]
		pop.Contact = &event.Contact{ID: m.ContactID, Name: m.Name, Company: m.Company, Source: m.source}
	}
	return s.cfg.Outbox.PublishEphemeral(r.Org, pop)
}
