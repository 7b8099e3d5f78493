package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/call"
)

// webhookURLLife is how long a signed audio URL in a webhook is valid. The body has the same bytes on each attempt.
// The last attempt can come after five days of a failing endpoint and three and a quarter days of retries.
const webhookURLLife = 9 * 24 * time.Hour

// signURL sets the recording's URL to one that needs no credential until life has passed.
func (s *Service) signURL(maker access.Holder, r *Recording, sandbox bool, life time.Duration) {
	url, until := s.cfg.Links.Sign(s.cfg.Links.Audio(r.ID, sandbox), maker, r.ID, life)
	r.URL, r.URLExpiresAt = &url, &until
}

func (s *Service) addSignedURL(ctx context.Context, r *Recording) {
	if r.Status == "available" {
		p, _ := access.From(ctx)
		s.signURL(p.Holder(), r, p.Environment == access.Sandbox, call.SignedURLLife)
	}
}

// RecordingOfIn holds the input of RecordingOf.
type RecordingOfIn struct {
	ID     string `path:"id" maxLength:"40"`
	Format string `query:"format" enum:"json,audio" default:"json" doc:"json: the record; audio: a redirect to the audio"`
}

// RecordingOf returns the latest recording of a call as JSON, or redirects the client to its audio.
func (s *Service) RecordingOf(ctx context.Context, in *RecordingOfIn) (*huma.StreamResponse, error) {
	org := access.Org(ctx)
	r, err := recordingOf(ctx, s.cfg.DB.Read(ctx), org, in.ID)
	if db.IsNone(err) {
		return nil, s.noRecording(ctx, org, in.ID)
	}
	if err != nil {
		return nil, err
	}
	s.addSignedURL(ctx, &r)
	if in.Format == "audio" {
		return redirect(r)
	}
	return op.JSONStream(r), nil
}

// noRecording returns the error for a call without a recording: "call not found", or recording_not_found with the
// reason not_answered or not_recorded.
func (s *Service) noRecording(ctx context.Context, org, id string) error {
	c, err := s.cfg.Calls.Find(ctx, org, id)
	if db.IsNone(err) {
		return op.NotFound("call")
	}
	if err != nil {
		return err
	}
	reason := "not_recorded"
	if c.AnsweredAt == nil {
		reason = "not_answered"
	}
	e := op.Fail("recording_not_found", "this call has no recording")
	e.Extra = map[string]any{"reason": reason}
	return e
}

func redirect(r Recording) (*huma.StreamResponse, error) {
	if r.URL == nil {
		return nil, notReady(r)
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Location", *r.URL)
		h.SetStatus(http.StatusFound)
	}}, nil
}

func notReady(r Recording) *op.Error {
	if r.Status == "failed" {
		e := op.Fail("recording_not_found", cmp.Or(r.failure(), "the recording failed"))
		e.Extra = map[string]any{"reason": "failed"}
		return e
	}
	if r.Status == "deleted" {
		return op.Fail("gone", "the recording was deleted")
	}
	e := op.State("the recording is not finished yet", r.Status)
	e.Header = http.Header{"Retry-After": {"2"}}
	return e
}

// RecordingsIn holds the filters of Recordings.
type RecordingsIn struct {
	CallID      string   `query:"call_id" maxLength:"40"`
	Status      []string `query:"status" enum:"recording,paused,processing,available,failed,deleted"`
	MinDuration int      `query:"min_duration_seconds" minimum:"0"`
	LegalHold   string   `query:"legal_hold" enum:"true,false"`
	op.Span
	op.Paging
}

// Recordings lists recordings, newest first.
func (s *Service) Recordings(ctx context.Context, in *RecordingsIn) (*op.Out[op.Page[Recording]], error) {
	org := access.Org(ctx)
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	const text = `SELECT ` + recordingColumns + ` FROM recordings WHERE org_id = $1`
	view, err := visibility.From(ctx, s.cfg.DB.Read(ctx))
	if err != nil {
		return nil, err
	}
	f := view.Narrow(db.Where(text, org), "call_id").Equal("call_id", in.CallID).In("status", in.Status).Between("started_at", since,
		until).
		And("duration_seconds >= ?", in.MinDuration)
	if in.LegalHold != "" {
		f.And("legal_hold = ?", in.LegalHold == "true")
	}
	total, err := in.Total(ctx, s.cfg.DB.Read(ctx), f)
	if err != nil {
		return nil, err
	}
	all, err := s.listRecordings(ctx, f.Page("started_at", true, after.Int, after.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	for i := range all {
		s.addSignedURL(ctx, &all[i])
	}
	out := op.Paged(ctx, in.Paging, all, func(r Recording) op.Position {
		return op.Position{Int: r.StartedAt.UnixMicro(), ID: r.ID}
	})
	out.Body.Total = total
	return out, nil
}

func (s *Service) listRecordings(ctx context.Context, f *db.Filter) ([]Recording, error) {
	text, args := f.SQL()
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list recordings: %w", err)
	}
	defer rows.Close()
	var all []Recording
	for rows.Next() {
		r, err := scanRecording(rows)
		if err != nil {
			return nil, fmt.Errorf("list recordings: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// GetRecordingIn holds the input of GetRecording.
type GetRecordingIn struct {
	ID string `path:"id" maxLength:"40"`
}

// GetRecording returns one recording.
func (s *Service) GetRecording(ctx context.Context, in *GetRecordingIn) (*op.Out[Recording], error) {
	org := access.Org(ctx)
	r, err := getRecording(ctx, s.cfg.DB.Read(ctx), org, in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("recording")
	}
	if err != nil {
		return nil, err
	}
	s.addSignedURL(ctx, &r)
	return op.OK(r)
}

// AudioIn holds the input of Audio.
type AudioIn struct {
	ID      string `path:"id" maxLength:"40"`
	Channel string `query:"channel" enum:"caller,agent" doc:"Only this side. agent: the organisation's; caller: the other party, also if the organisation called it"`
	Format  string `query:"format" enum:"wav" default:"wav"`
	call.SignedQuery
}

// Audio sends the audio, whole or in the byte ranges that the client requests.
func (s *Service) Audio(ctx context.Context, in *AudioIn) (*huma.StreamResponse, error) {
	org, err := s.cfg.Links.Authorize(ctx, in.ID, in.SignedQuery)
	if err != nil {
		return nil, err
	}
	r, err := getRecording(ctx, s.cfg.DB.Read(ctx), org, in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("recording")
	}
	if err != nil {
		return nil, err
	}
	if r.Status != "available" {
		return nil, notReady(r)
	}
	f, _, err := s.cfg.Files.Open(ctx, r.blob)
	if err != nil {
		return nil, fmt.Errorf("open recording %s: %w", r.ID, err)
	}
	content, err := s.selectSide(ctx, f, org, r.CallID, in.Channel)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read recording %s: %w", r.ID, err), f.Close())
	}
	return op.FileStream(ctx, op.File{Org: org, Content: content, Name: r.CallID + ".wav", Type: "audio/wav", Changed: r.AvailableAt.Time})
}

// SignedURL turns the URL of a recording's audio into a signed one that needs no credential for nine days (webhookURLLife). It works as
// long as the maker may read the recording. Any other URL is returned unchanged.
func (s *Service) SignedURL(maker access.Holder, address string) string {
	for _, sandbox := range []bool{false, true} {
		id, ok := strings.CutPrefix(address, s.cfg.Links.Prefix(sandbox)+"/recordings/")
		if id, ends := strings.CutSuffix(id, "/audio"); ok && ends {
			r := Recording{ID: id}
			s.signURL(maker, &r, sandbox, webhookURLLife)
			return *r.URL
		}
	}
	return address
}
