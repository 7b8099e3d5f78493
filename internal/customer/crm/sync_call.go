package crm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Writes of finished calls: at the end of the call, and again with the summary and the transcript.

// maxTranscriptBytes bounds the transcript that is passed to systems.
const maxTranscriptBytes = 256 << 10

// writeCall writes a call, or changes its record. It sends no request if the content is unchanged.
func (s *Service) writeCall(ctx context.Context, a adapter.Adapter, by access.Holder, x *Sync) (adapter.WriteResult, error) {
	if err := s.checkMayLog(ctx, by); err != nil {
		return adapter.WriteResult{}, err
	}
	c, err := s.cfg.Subjects.Call(ctx, x.org, x.SubjectID)
	if db.IsNone(err) {
		return adapter.WriteResult{}, errSubjectGone
	}
	if err != nil {
		return adapter.WriteResult{}, err
	}
	out, err := s.callLogOf(ctx, x.org, c)
	if err != nil {
		return adapter.WriteResult{}, err
	}
	digest := out.Digest()
	out.RecordID = deref(x.ExternalID)
	if x.writtenDigest != "" && (x.writtenDigest == digest || out.RecordID == "" || writesOnce(a)) {
		return adapter.WriteResult{}, nil
	}
	if out.Person, err = s.personFor(ctx, a, *x, a.(adapter.CallLogger).LogNeedsRecord() && out.RecordID == ""); err != nil {
		return adapter.WriteResult{}, err
	}
	key := x.ID
	if out.RecordID != "" {
		key += "-" + digest
	}
	made, err := a.(adapter.CallLogger).LogCall(ctx, key, out)
	if err == nil {
		x.writtenDigest = digest
	}
	return made, err
}

// hold makes the principal of the context the maker of a connection. A template for calls needs the scope that reads calls.
func (c *Connection) hold(ctx context.Context, settings map[string]any) error {
	p, _ := access.From(ctx)
	for _, name := range []string{"call_log", "call_update"} {
		if settings[name] != nil && !slices.Contains(p.Scopes, access.CallsRead) {
			return &op.Error{Code: "insufficient_scope", Detail: name + " needs calls:read; leave it out, or use a key that holds it",
				Extra: map[string]any{"required_scopes": []access.Scope{access.CallsRead}}}
		}
	}
	c.holder = p.Holder()
	return nil
}

// checkMayLog refuses to write calls to a system whose connection was made by somebody who may not read calls (any more).
func (s *Service) checkMayLog(ctx context.Context, by access.Holder) error {
	held, err := s.cfg.Credentials.StillHeld(ctx, by)
	if err == nil && !slices.Contains(held, access.CallsRead) {
		err = fmt.Errorf("%w: who made the connection may not read calls; set its settings again with a key that holds calls:read",
			adapter.ErrRefused)
	}
	return err
}

// callLogOf converts a call to the CallLog for adapters.
func (s *Service) callLogOf(ctx context.Context, org string, c call.Call) (adapter.CallLog, error) {
	out := adapter.CallLog{ID: c.ID, Direction: string(c.Direction), Status: string(c.Status), From: c.FromNumber, To: c.ToNumber,
		StartedAt: c.StartedAt,
		Duration:  c.TotalSeconds, Talk: c.TalkDurationSeconds, Summary: deref(c.AISummary), Disposition: deref(c.Disposition),
		RecordingURL: deref(c.RecordingURL)}
	if c.EndedAt != nil {
		out.EndedAt = *c.EndedAt
	}
	if g := c.Agent(); g != nil {
		out.Agent = g.Name
	}
	words, err := s.cfg.Subjects.Transcript(ctx, org, c.ID)
	if len(words) > maxTranscriptBytes {
		words = strings.ToValidUTF8(words[:maxTranscriptBytes], "")
	}
	out.Transcript = words
	return out, err
}
