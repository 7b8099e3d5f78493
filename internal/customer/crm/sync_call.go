package crm

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
)

// Writes of finished calls: at the end of the call, and again with the summary and the transcript.

// maxTranscriptBytes bounds the transcript that is passed to systems.
const maxWords = 256 << 10

// writeCall writes a call, or changes its record. It sends no request if the content is unchanged.
func (s *Service) writeCall(ctx context.Context, a Adapter, x *Sync) (Written, error) {
	c, err := s.Call(ctx, x.org, x.SubjectID)
	if db.IsNone(err) {
		return Written{}, errGone
	}
	if err != nil {
		return Written{}, err
	}
	out, err := s.callLog(ctx, x.org, c)
	if err != nil {
		return Written{}, err
	}
	digest := out.digest()
	out.RecordID = value(x.ExternalID)
	if x.written != "" && (x.written == digest || out.RecordID == "" || once(a)) {
		return Written{}, nil
	}
	if out.Whom, err = s.whom(ctx, a, *x, a.(CallLogger).LogNeedsRecord() && out.RecordID == ""); err != nil {
		return Written{}, err
	}
	key := x.ID
	if out.RecordID != "" {
		key += "-" + digest
	}
	made, err := a.(CallLogger).LogCall(ctx, key, out)
	if err == nil {
		x.written = digest
	}
	return made, err
}

// callLogOf converts a call to the CallLog for adapters.
func (s *Service) callLog(ctx context.Context, org string, c call.Call) (CallLog, error) {
	out := CallLog{ID: c.ID, Direction: string(c.Direction), Status: string(c.Status), From: c.FromNumber, To: c.ToNumber, StartedAt: c.StartedAt,
		Duration: c.TotalSeconds, Talk: c.TalkDurationSeconds, Summary: value(c.AISummary), Disposition: value(c.Disposition), RecordingURL: value(c.RecordingURL)}
	if c.EndedAt != nil {
		out.EndedAt = *c.EndedAt
	}
	if g := c.Agent(); g != nil {
		out.Agent = g.Name
	}
	if s.Words == nil {
		return out, nil
	}
	words, err := s.Words(ctx, org, c.ID)
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "")
	}
	out.Transcript = words
	return out, err
}

// digest returns a hash of the content of a log without the person and the record id.
func (c CallLog) digest() string {
	c.Whom, c.RecordID = Whom{}, ""
	text, _ := json.Marshal(c)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
