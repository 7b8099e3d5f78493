package call

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

func (s *Service) timelineOperations() []op.Operation {
	return []op.Operation{
		op.New("calls.events", "GET /calls/{id}/events", access.CallsRead, "List what happened in a call, step by step", s.Events),
		op.New("calls.quality", "GET /calls/{id}/quality", access.CallsRead, "How the call sounded, leg by leg", s.CallQuality),
		op.NewStream("calls.trace", "GET /calls/{id}/trace", access.UsersAdmin, "Get the signalling of a call, secrets removed", s.Trace).
			Answers(200, "application/json", Trace{}).Answers(200, "application/vnd.tcpdump.pcap", nil),
	}
}

// CallEvent is one entry of a call's timeline in the API.
type CallEvent struct {
	At       db.Time    `json:"at"`
	Kind     string     `json:"kind" doc:"Such as leg.ringing, call.held, transfer.failed, api.hold; event. and a kind for an event that was told, webhook. for its delivery" example:"leg.ringing"`
	LegID    *string    `json:"leg_id"`
	Detail   op.Members `json:"detail"`
	Sequence *int64     `json:"sequence" doc:"Of the event that was told"`
}

// EventsIn holds the input of Events.
type EventsIn struct {
	ID string `path:"id" maxLength:"40"`
	op.Paging
}

// Events lists the signalling steps, API requests, published events and webhook deliveries of a call in order of
// time.
func (s *Service) Events(ctx context.Context, in *EventsIn) (*op.Out[op.Page[CallEvent]], error) {
	if _, err := s.findCall(ctx, in.ID); err != nil {
		return nil, err
	}
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.timelineEvents(ctx, access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	from := min(int(after.Int), len(all))
	rest := all[from:]
	out := op.Paged(ctx, in.Paging, rest[:min(len(rest), in.Limit+1)], func(CallEvent) op.Position {
		return op.Position{Int: int64(from + in.Limit), ID: "step"}
	})
	return op.WithTotal(out, in.Paging, func() (int, error) { return len(all), nil })
}

func (s *Service) timelineEvents(ctx context.Context, org, callID string) ([]CallEvent, error) {
	timeline, err := s.timelineOf(ctx, org, callID)
	if err != nil {
		return nil, err
	}
	all := []CallEvent{}
	for _, x := range timeline.Steps {
		all = append(all, CallEvent{At: db.At(x.At), Kind: x.Kind, LegID: db.Null(x.LegID).Ptr(), Detail: x.Detail})
	}
	told, err := s.publishedEvents(ctx, org, callID)
	if err != nil {
		return nil, err
	}
	all = append(all, told...)
	chosen, err := s.dispositionEvent(ctx, org, callID)
	if err != nil {
		return nil, err
	}
	all = append(all, chosen...)
	if s.cfg.Deliveries != nil {
		sent, err := s.cfg.Deliveries.WebhookDeliveries(ctx, org, callID)
		if err != nil {
			return nil, err
		}
		for _, x := range sent {
			all = append(all, CallEvent{At: db.At(x.At), Kind: x.Kind, Detail: x.Detail})
		}
	}
	slices.SortStableFunc(all, func(a, b CallEvent) int { return cmp.Compare(a.At.UnixMicro(), b.At.UnixMicro()) })
	return all, nil
}

// dispositionEvent returns the entry of the timeline for the disposition that was set last, if any.
func (s *Service) dispositionEvent(ctx context.Context, org, callID string) ([]CallEvent, error) {
	const q = `SELECT disposition, disposition_label, disposition_by, disposition_at FROM calls
		WHERE org_id = $1 AND id = $2 AND disposition_at IS NOT NULL`
	var code, label db.Null
	var by db.JSON[Author]
	e := CallEvent{Kind: "api.disposition"}
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, q, org, callID).Scan(&code, &label, &by, &e.At)
	if db.IsNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find disposition of call: %w", err)
	}
	e.Detail = map[string]any{"code": code.Ptr(), "label": label.Ptr(), "by": by.V}
	return []CallEvent{e}, nil
}

// publishedEvents returns the events that were published for a call, as entries of its timeline.
func (s *Service) publishedEvents(ctx context.Context, org, callID string) ([]CallEvent, error) {
	const q = `SELECT id, sequence, kind, occurred_at FROM events WHERE org_id = $1 AND call_id = $2 ORDER BY id LIMIT 5000`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, org, callID)
	if err != nil {
		return nil, fmt.Errorf("list events of call: %w", err)
	}
	defer rows.Close()
	var all []CallEvent
	for rows.Next() {
		var e CallEvent
		var id string
		if err := rows.Scan(&id, &e.Sequence, &e.Kind, &e.At); err != nil {
			return nil, err
		}
		e.Kind, e.Detail = "event."+e.Kind, map[string]any{"event_id": id}
		all = append(all, e)
	}
	return all, rows.Err()
}

// QualityReport holds the audio quality of every leg of a call.
type QualityReport struct {
	CallID string         `json:"call_id"`
	Legs   []QualityOfLeg `json:"legs" nullable:"false"`
}

// QualityOfLeg holds the quality of both directions of a leg; null if there is no measurement.
type QualityOfLeg struct {
	LegID    string   `json:"leg_id"`
	Role     string   `json:"role" enum:"caller,callee,agent,ai,monitor,system"`
	Number   string   `json:"number"`
	Received *Quality `json:"received" doc:"What came from this side"`
	Sent     *Quality `json:"sent" doc:"What this side says it got from us"`
}

// CallQuality returns the audio quality of the legs of a call. A leg has no figures until it has ended.
func (s *Service) CallQuality(ctx context.Context, in *GetIn) (*op.Out[QualityReport], error) {
	c, err := s.findCall(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	one := []Call{c}
	if err := legsOf(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), one); err != nil {
		return nil, err
	}
	out := QualityReport{CallID: c.ID, Legs: []QualityOfLeg{}}
	for _, l := range one[0].Legs {
		x := QualityOfLeg{LegID: l.ID, Role: l.Role, Number: l.Number}
		var both LegQuality
		if l.quality != "" && json.Unmarshal([]byte(l.quality), &both) == nil {
			x.Received, x.Sent = both.Received, both.Sent
		}
		for _, q := range []*Quality{x.Received, x.Sent} {
			if q != nil && q.Samples == nil {
				q.Samples = []Sample{}
			}
		}
		out.Legs = append(out.Legs, x)
	}
	return op.OK(out)
}

// Trace holds the SIP messages of a call.
type Trace struct {
	CallID   string         `json:"call_id"`
	Messages []TraceMessage `json:"messages" nullable:"false"`
}

// TraceMessage is one SIP message, without secrets.
type TraceMessage struct {
	At        db.Time `json:"at"`
	Sent      bool    `json:"sent" doc:"By us"`
	Transport string  `json:"transport" enum:"udp,tcp,tls,ws,wss"`
	Local     string  `json:"local"`
	Remote    string  `json:"remote"`
	LegID     *string `json:"leg_id"`
	Text      string  `json:"text"`
}

// TraceIn holds the input of Trace.
type TraceIn struct {
	ID     string `path:"id" maxLength:"40"`
	Format string `query:"format" enum:"json,pcap" default:"json" doc:"pcap: a file for Wireshark"`
}

// Trace returns the SIP messages of a call from its beginning, as JSON or as a capture file. They are kept for 30
// days.
func (s *Service) Trace(ctx context.Context, in *TraceIn) (*huma.StreamResponse, error) {
	c, err := s.findCall(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	timeline, err := s.timelineOf(ctx, access.Org(ctx), c.ID)
	if err != nil {
		return nil, err
	}
	if in.Format == "pcap" {
		return file(pcap(timeline.Messages), "application/vnd.tcpdump.pcap", c.ID+".pcap"), nil
	}
	t := Trace{CallID: c.ID, Messages: []TraceMessage{}}
	for _, m := range timeline.Messages {
		t.Messages = append(t.Messages, TraceMessage{At: db.At(m.At), Sent: m.Sent, Transport: m.Transport, Local: m.Local,
			Remote: m.Remote, LegID: db.Null(m.LegID).Ptr(), Text: m.Text})
	}
	return op.JSONStream(t), nil
}

// file returns a response that browsers save as a file with the name.
func file(b []byte, mediaType, name string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", mediaType)
		h.SetHeader("Content-Disposition", `attachment; filename="`+name+`"`)
		h.SetHeader("Content-Length", strconv.Itoa(len(b)))
		_, _ = h.BodyWriter().Write(b)
	}}
}
