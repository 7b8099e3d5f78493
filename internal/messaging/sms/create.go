package sms

import (
	"context"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
)

// CreateIn is the request to send a message.
type CreateIn struct{ Body Create }

// Create is a message to send.
type Create struct {
	To        string            `json:"to" maxLength:"60" doc:"E.164 or as dialled in the organisation's country, or an extension as ext:101" example:"+12025550111"`
	From      string            `json:"from" maxLength:"40" doc:"A number of the organisation with messages enabled" example:"+12025550143"`
	Body      string            `json:"body" doc:"1 to 1600 characters" example:"Your appointment is at nine."`
	MediaURLs []string          `json:"media_urls,omitempty" doc:"At most 10 https addresses of attachments"`
	SendAt    string            `json:"send_at,omitempty" maxLength:"40" doc:"RFC 3339, up to 35 days ahead; now unless given" example:"2026-01-31T09:30:00Z"`
	Metadata  map[string]string `json:"metadata,omitempty" doc:"At most 20 members; names up to 40, values up to 500 characters"`
}

const (
	maxBodyLength    = 1600
	maxMedia         = 10
	maxURLLength     = 2048
	maxScheduleAhead = 35 * 24 * time.Hour
	maxMetadata      = 20
)

// Create stores a message that is sent at once or at its time.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Message], error) {
	var m Message
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		m, err = s.Submit(ctx, tx, db.NewID("sms"), in.Body)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.Contact = s.cfg.Contacts.LookupContact(ctx, m.org, m.peer())
	return &op.Out[Message]{Body: m, Location: op.Prefix + "/sms/" + m.ID}, nil
}

// storeAndEnqueue stores an outbound message in its conversation, with the job that sends it.
func (s *Service) storeAndEnqueue(ctx context.Context, tx db.Querier, m *Message, numberID string) error {
	if err := s.addToConversation(ctx, tx, m, numberID); err != nil {
		return err
	}
	if err := insert(ctx, tx, *m); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	if m.Status == scheduled {
		if err := s.publishStatus(ctx, tx, *m); err != nil {
			return err
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: m.org, Queue: Queue, Kind: dueJob, Args: messageArgs{m.ID},
			RunAt: m.ScheduledAt.Time, UniqueKey: dueJob + " " + m.ID})
	}
	return s.enqueue(ctx, tx, *m)
}

// newMessage returns a new message for a request, or every violation in it.
func (s *Service) newMessage(ctx context.Context, tx db.Querier, b Create) (Message, OwnNumber, error) {
	who, _ := access.From(ctx)
	now := db.At(s.cfg.Clock.Now())
	m := Message{Direction: outbound, Status: queued, Body: b.Body, Media: attachments(b.MediaURLs), Source: "api",
		UserID: db.Null(who.UserID).Ptr(), CreatedAt: now, Metadata: b.Metadata, Sandbox: who.Environment == access.Sandbox, org: who.OrgID}
	if who.Kind == access.BrowserSession {
		m.Source = "console"
	}
	if m.Metadata == nil {
		m.Metadata = map[string]string{}
	}
	m.Encoding, m.Segments = Segments(b.Body)
	wrong := append(b.validate(), m.parseSchedule(b.SendAt, now)...)
	from, violation, err := s.senderNumber(ctx, tx, m.org, b.From)
	if err != nil {
		return m, from, err
	}
	if violation != nil {
		wrong = append(wrong, *violation)
	}
	if b.To == "" {
		wrong = append(wrong, op.Field("to", "required", "must be a number"))
	}
	if len(wrong) > 0 {
		return m, from, op.Invalid(wrong...)
	}
	m.FromNumber = from.Number
	m.carrier, m.ToNumber, err = s.cfg.Router.RouteMessage(ctx, m.org, from, b.To)
	return m, from, err
}

// senderNumber returns the number from which a message is sent, or the violation.
func (s *Service) senderNumber(ctx context.Context, tx db.Querier, org, text string) (OwnNumber, *op.Violation, error) {
	n, ok, err := s.cfg.Numbers.OwnNumber(ctx, tx, org, text)
	var wrong op.Violation
	switch {
	case err != nil:
		return n, nil, fmt.Errorf("find number: %w", err)
	case !ok:
		wrong = op.Field("from", "number_not_owned", "not a number of your organisation")
	case !n.SMS:
		wrong = op.Field("from", "sms_not_enabled", "messages are not enabled for this number: set sms_enabled")
	default:
		return n, nil, nil
	}
	return n, &wrong, nil
}

// parseSchedule parses the time at which a message is to be sent.
func (m *Message) parseSchedule(text string, now db.Time) []op.Violation {
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return []op.Violation{op.Field("send_at", "invalid_time", "must be RFC 3339 such as 2026-01-31T09:30:00Z")}
	}
	if at.Sub(now.Time) > maxScheduleAhead {
		return []op.Violation{op.Field("send_at", "out_of_range", "at most 35 days ahead")}
	}
	if at.After(now.Time) {
		m.Status, m.ScheduledAt = scheduled, db.At(at)
	}
	return nil
}

// validate returns the violations that need no look-up.
func (b Create) validate() (wrong []op.Violation) {
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	n := utf8.RuneCountInString(b.Body)
	want(n >= 1 && n <= maxBodyLength, "body", "invalid_length", "must have 1 to 1600 characters")
	want(len(b.MediaURLs) <= maxMedia, "media_urls", "too_many", "at most 10")
	for _, text := range b.MediaURLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(text) > maxURLLength {
			want(false, "media_urls", "invalid_url", "must be http or https addresses of at most 2048 characters")
			break
		}
	}
	want(len(b.Metadata) <= maxMetadata, "metadata", "too_many", "at most 20 members")
	for _, name := range slices.Sorted(maps.Keys(b.Metadata)) {
		ok := name != "" && utf8.RuneCountInString(name) <= 40 && utf8.RuneCountInString(b.Metadata[name]) <= 500
		want(ok, "metadata."+name, "too_long", "names have 1 to 40, values up to 500 characters")
	}
	return wrong
}

// attachments returns the media for URLs; the content type is derived from the file extension.
func attachments(urls []string) []Media {
	all := make([]Media, len(urls))
	for i, text := range urls {
		all[i].URL = text
		if u, err := url.Parse(text); err == nil {
			all[i].ContentType = mime.TypeByExtension(path.Ext(u.Path))
		}
	}
	return all
}
