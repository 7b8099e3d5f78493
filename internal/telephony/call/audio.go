package call

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// signedURLLife is how long a signed audio URL is valid.
const signedURLLife = 5 * time.Minute

// webhookURLLife is how long a signed audio URL in a webhook is valid. The body has the same bytes on each attempt.
// The last attempt can come after five days of a failing endpoint and three and a quarter days of retries.
const webhookURLLife = 9 * 24 * time.Hour

// signURL sets the recording's URL to one that needs no credential until life has passed.
func (s *Service) signURL(org string, r *Recording, sandbox bool, life time.Duration) {
	until := s.Now().Add(life)
	expires := strconv.FormatInt(until.Unix(), 10)
	url := fmt.Sprintf("%s?org=%s&expires=%s&signature=%s", s.AudioURL(r.ID, sandbox), org, expires, s.signature(org, r.ID, expires))
	at := db.At(until)
	r.URL, r.URLExpiresAt = &url, &at
}

func (s *Service) signature(org, id, expires string) string {
	m := hmac.New(sha256.New, s.URLKey)
	m.Write([]byte(org + "\n" + id + "\n" + expires))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (s *Service) addSignedURL(ctx context.Context, org string, r *Recording) {
	if r.Status == "available" {
		p, _ := access.From(ctx)
		s.signURL(org, r, p.Environment == access.Sandbox, signedURLLife)
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
	r, err := recordingOf(ctx, s.DB.Read(ctx), org, in.ID)
	if db.IsNone(err) {
		return nil, s.noRecording(ctx, org, in.ID)
	}
	if err != nil {
		return nil, err
	}
	s.addSignedURL(ctx, org, &r)
	if in.Format == "audio" {
		return redirect(r)
	}
	return op.JSONStream(r), nil
}

// noRecording returns the error for a call without a recording: "call not found", or recording_not_found with the
// reason not_answered or not_recorded.
func (s *Service) noRecording(ctx context.Context, org, id string) error {
	c, err := getCall(ctx, s.DB.Read(ctx), org, id)
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
		e := op.Fail("recording_not_found", "the recording failed")
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
	f := db.Where(text, org).Equal("call_id", in.CallID).In("status", in.Status).Between("started_at", since, until).
		And("duration_seconds >= ?", in.MinDuration)
	filterBool(f, in.LegalHold, "legal_hold = TRUE", "legal_hold = FALSE")
	total, err := in.Total(ctx, s.DB.Read(ctx), f)
	if err != nil {
		return nil, err
	}
	all, err := s.listRecordings(ctx, f.Page("started_at", true, after.Int, after.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	for i := range all {
		s.addSignedURL(ctx, org, &all[i])
	}
	out := op.Paged(ctx, in.Paging, all, func(r Recording) op.Position {
		return op.Position{Int: r.StartedAt.UnixMicro(), ID: r.ID}
	})
	out.Body.Total = total
	return out, nil
}

func (s *Service) listRecordings(ctx context.Context, f *db.Filter) ([]Recording, error) {
	text, args := f.SQL()
	rows, err := s.DB.Read(ctx).Query(ctx, text, args...)
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
	r, err := getRecording(ctx, s.DB.Read(ctx), org, in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("recording")
	}
	if err != nil {
		return nil, err
	}
	s.addSignedURL(ctx, org, &r)
	return op.OK(r)
}

// AudioIn holds the input of Audio. org, expires and signature replace the credential.
type AudioIn struct {
	ID        string `path:"id" maxLength:"40"`
	Channel   string `query:"channel" enum:"caller,agent" doc:"Only this side"`
	Format    string `query:"format" enum:"wav" default:"wav"`
	Org       string `query:"org" maxLength:"40"`
	Expires   string `query:"expires" maxLength:"20"`
	Signature string `query:"signature" maxLength:"64"`
}

// Audio sends the audio, whole or in the byte ranges that the client requests.
func (s *Service) Audio(ctx context.Context, in *AudioIn) (*huma.StreamResponse, error) {
	org, err := s.authorizedOrg(ctx, in)
	if err != nil {
		return nil, err
	}
	r, err := getRecording(ctx, s.DB.Read(ctx), org, in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("recording")
	}
	if err != nil {
		return nil, err
	}
	if r.Status != "available" {
		return nil, notReady(r)
	}
	f, _, err := s.Files.Open(ctx, r.blob)
	if err != nil {
		return nil, fmt.Errorf("open recording %s: %w", r.ID, err)
	}
	content, err := selectChannel(f, in.Channel)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read recording %s: %w", r.ID, err), f.Close())
	}
	return op.FileStream(f, content, r.CallID+".wav", "audio/wav", r.AvailableAt.Time), nil
}

// authorizedOrg returns the organisation of the audio that the request may read: the one of a valid signature, else
// the one of the credential.
func (s *Service) authorizedOrg(ctx context.Context, in *AudioIn) (string, error) {
	if in.Signature == "" {
		return access.Org(ctx), nil
	}
	at, err := strconv.ParseInt(in.Expires, 10, 64)
	good := hmac.Equal([]byte(in.Signature), []byte(s.signature(in.Org, in.ID, in.Expires)))
	if err != nil || !good || s.Now().Unix() > at {
		return "", op.Fail("unauthenticated", "the signature of this address is wrong or has expired; ask for the recording again")
	}
	return in.Org, nil
}

// selectChannel returns the whole file, or one channel of a two-channel WAV file as a mono file. For one channel the
// file is read into memory.
func selectChannel(f io.ReadSeeker, side string) (io.ReadSeeker, error) {
	if side == "" {
		return f, nil
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	data := bytes.Index(b, []byte("data"))
	if data < 36 || data+8 > len(b) || !strings.HasPrefix(string(b), "RIFF") {
		return nil, errors.New("not a WAV file")
	}
	at := 0
	if side == "agent" {
		at = 1
	}
	return bytes.NewReader(extractChannel(b[:data], b[data+8:], at)), nil
}

// extractChannel writes a mono file with every second sample. A sample has one byte (G.711) or two bytes (linear
// PCM).
func extractChannel(header, samples []byte, at int) []byte {
	tag, rate := binary.LittleEndian.Uint16(header[20:]), binary.LittleEndian.Uint32(header[24:])
	size := max(int(binary.LittleEndian.Uint16(header[34:]))/8, 1)
	if binary.LittleEndian.Uint16(header[22:]) == 1 { // the recording has one channel only
		return monoWAV(tag, rate, size, samples)
	}
	side := make([]byte, 0, len(samples)/2)
	for i := at * size; i+size <= len(samples); i += 2 * size {
		side = append(side, samples[i:i+size]...)
	}
	return monoWAV(tag, rate, size, side)
}

// monoWAV writes a WAV file with one channel. size is the size of a sample in bytes.
func monoWAV(tag uint16, rate uint32, size int, samples []byte) []byte {
	var out bytes.Buffer
	out.WriteString("RIFF")
	writeLE(&out, uint32(4+26+8+len(samples)))
	out.WriteString("WAVEfmt ")
	writeLE(&out, uint32(18), tag, uint16(1), rate, rate*uint32(size), uint16(size), uint16(8*size), uint16(0))
	out.WriteString("data")
	writeLE(&out, uint32(len(samples)))
	out.Write(samples)
	return out.Bytes()
}

func writeLE(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // a bytes.Buffer returns no error
	}
}

// SignedURL turns the URL of a recording's audio into a signed one that needs no credential for nine days
// (webhookURLLife). Any other URL is returned unchanged.
func (s *Service) SignedURL(org, address string) string {
	for _, sandbox := range []bool{false, true} {
		id, ok := strings.CutPrefix(address, s.prefix(sandbox)+"/recordings/")
		if id, ends := strings.CutSuffix(id, "/audio"); ok && ends {
			r := Recording{ID: id}
			s.signURL(org, &r, sandbox, webhookURLLife)
			return *r.URL
		}
	}
	return address
}
