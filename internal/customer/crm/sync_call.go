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
const maxTranscriptBytes = 256 << 10

// writeCall writes a call, or changes its record. It sends no request if the content is unchanged.
func (s *Service) writeCall(ctx context.Context, a Adapter, x *Sync) (WriteResult, error) {
	c, err := s.Call(ctx, x.org, x.SubjectID)
	if db.IsNone(err) {
		return WriteResult{}, errSubjectGone
	}
	if err != nil {
		return WriteResult{}, err
	}
	out, err := s.callLogOf(ctx, x.org, c)
	if err != nil {
		return WriteResult{}, err
	}
	digest := out.digest()
	out.RecordID = deref(x.ExternalID)
	if x.writtenDigest != "" && (x.writtenDigest == digest || out.RecordID == "" || writesOnce(a)) {
		return WriteResult{}, nil
	}
	if out.Person, err = s.personFor(ctx, a, *x, a.(CallLogger).LogNeedsRecord() && out.RecordID == ""); err != nil {
		return WriteResult{}, err
	}
	key := x.ID
	if out.RecordID != "" {
		key += "-" + digest
	}
	made, err := a.(CallLogger).LogCall(ctx, key, out)
	if err == nil {
		x.writtenDigest = digest
	}
	return made, err
}

// callLogOf converts a call to the CallLog for adapters.
func (s *Service) callLogOf(ctx context.Context, org string, c call.Call) (CallLog, error) {
	out := CallLog{ID: c.ID, Direction: string(c.Direction), Status: string(c.Status), From: c.FromNumber, To: c.ToNumber, StartedAt: c.StartedAt,
		Duration: c.TotalSeconds, Talk: c.TalkDurationSeconds, Summary: deref(c.AISummary), Disposition: deref(c.Disposition), RecordingURL: deref(c.RecordingURL)}
	if c.EndedAt != nil {
		out.EndedAt = *c.EndedAt
	}
	if g := c.Agent(); g != nil {
		out.Agent = g.Name
	}
	if s.Transcript == nil {
		return out, nil
	}
	words, err := s.Transcript(ctx, org, c.ID)
	if len(words) > maxTranscriptBytes {
		words = strings.ToValidUTF8(words[:maxTranscriptBytes], "")
	}
	out.Transcript = words
	return out, err
}

// digest returns a hash of the content of a log without the person and the record id.
func (c CallLog) digest() string {
	c.Person, c.RecordID = Person{}, ""
	text, _ := json.Marshal(c)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
