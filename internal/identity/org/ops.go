package org

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/redact"
)

// Operations returns the API operations of the organisation.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("organization.get", "GET /organization", access.Any, "Get the organisation", s.Show),
		op.New("organization.update", "PATCH /organization", access.UsersAdmin, "Change the organisation and its settings", s.Update),
	}
}

// Show returns the organisation of the request.
func (s *Service) Show(ctx context.Context, _ *struct{}) (*op.Out[Organization], error) {
	o, err := s.Get(ctx, access.Org(ctx))
	if err != nil {
		return nil, fmt.Errorf("get organisation: %w", err)
	}
	return op.Versioned(o, o.UpdatedAt)
}

// UpdateIn is the input of Update.
type UpdateIn struct {
	op.Match
	Body Patch `contentType:"application/json"`
}

// Patch is a merge patch. null restores the default of a setting.
type Patch struct {
	Name                op.Change[string]           `json:"name,omitzero"`
	Country             op.Change[string]           `json:"country,omitzero" doc:"ISO 3166"`
	Timezone            op.Change[string]           `json:"timezone,omitzero" doc:"IANA name"`
	Language            op.Change[string]           `json:"language,omitzero" doc:"BCP 47"`
	Recording           op.Change[RecordingPatch]   `json:"recording,omitzero"`
	Transcripts         op.Change[TranscriptsPatch] `json:"transcripts,omitzero"`
	Redaction           op.Change[RedactionPatch]   `json:"redaction,omitzero"`
	Outbound            op.Change[OutboundPatch]    `json:"outbound,omitzero"`
	Emergency           op.Change[EmergencyPatch]   `json:"emergency,omitzero"`
	AI                  op.Change[AIPatch]          `json:"ai,omitzero" doc:"Only null is accepted: the operator chooses the engines of the installation"`
	Brand               op.Change[string]           `json:"brand,omitzero"`
	WebhookHeaderPrefix op.Change[string]           `json:"webhook_header_prefix,omitzero"`
}

// RecordingPatch changes Recording.
type RecordingPatch struct {
	Mode          op.Change[string] `json:"mode,omitzero"`
	Announce      op.Change[bool]   `json:"announce,omitzero"`
	Consent       op.Change[string] `json:"consent,omitzero"`
	RetentionDays op.Change[int]    `json:"retention_days,omitzero"`

	AnnounceAudioID    op.Change[string] `json:"announce_audio_id,omitzero" doc:"Audio of the organisation that is played as the notice"`
	AnnounceText       op.Change[string] `json:"announce_text,omitzero" doc:"Text of the notice, 300 characters at most"`
	SilentAcknowledged op.Change[bool]   `json:"silent_acknowledged,omitzero" doc:"true: you take responsibility for recordings without a notice; stored with time and user"`
}

// TranscriptsPatch changes Transcripts.
type TranscriptsPatch struct {
	RetentionDays op.Change[int]      `json:"retention_days,omitzero"`
	Languages     op.Change[[]string] `json:"languages,omitzero"`
	Vocabulary    op.Change[[]Term]   `json:"vocabulary,omitzero" doc:"Replaces the vocabulary as a whole"`
	LearnNames    op.Change[bool]     `json:"learn_names,omitzero"`
}

// RedactionPatch changes Redaction.
type RedactionPatch struct {
	Kinds    op.Change[[]redact.Kind] `json:"kinds,omitzero" doc:"Replaces the list as a whole: card, expiry, cvv, account, health, social, pin"`
	Audio    op.Change[bool]          `json:"audio,omitzero"`
	Messages op.Change[bool]          `json:"messages,omitzero"`
}

// OutboundPatch changes Outbound.
type OutboundPatch struct {
	Enabled          op.Change[bool]     `json:"enabled,omitzero"`
	AllowedCountries op.Change[[]string] `json:"allowed_countries,omitzero"`
	BlockedTypes     op.Change[[]string] `json:"blocked_types,omitzero"`
	CallsPerSecond   op.Change[int]      `json:"calls_per_second,omitzero"`
	ConcurrentCalls  op.Change[int]      `json:"concurrent_calls,omitzero"`
	MinutesPerDay    op.Change[int]      `json:"minutes_per_day,omitzero"`
}

// EmergencyPatch changes Emergency.
type EmergencyPatch struct {
	Acknowledged   op.Change[bool]   `json:"acknowledged,omitzero" doc:"true: it is understood that emergency calls are not available"`
	DefaultAddress op.Change[string] `json:"default_address,omitzero"`
	Location       op.Change[Civic]  `json:"location,omitzero" doc:"Replaces the place as a whole"`
}

// AIPatch changes AI.
type AIPatch struct {
	Transcriber op.Change[EnginePatch] `json:"transcriber,omitzero"`
	Writer      op.Change[EnginePatch] `json:"writer,omitzero"`
	Embedder    op.Change[EnginePatch] `json:"embedder,omitzero"`
	Voice       op.Change[EnginePatch] `json:"voice,omitzero"`
}

// check refuses engines: they are chosen for the whole installation. null is accepted everywhere.
func (p AIPatch) check() []op.Violation {
	var c checker
	given := func(m op.Change[string]) bool { return m.Set && !m.Null }
	for _, e := range []struct {
		change      op.Change[EnginePatch]
		field, flag string
	}{
		{p.Transcriber, "ai.transcriber", "--transcriber"},
		{p.Writer, "ai.writer", "--summarizer"},
		{p.Embedder, "ai.embedder", "--embedder"},
		{p.Voice, "ai.voice", "--voice"},
	} {
		v := e.change.V
		c.want(!given(v.Name) && !given(v.Address) && !given(v.Model), e.field, "not_supported",
			"the operator chooses the engines of the installation with "+e.flag+"; leave it out or set it to null")
	}
	return c
}

// EnginePatch changes an Engine.
type EnginePatch struct {
	Name    op.Change[string] `json:"name,omitzero" doc:"builtin, off, or the name of a server"`
	Address op.Change[string] `json:"address,omitzero"`
	Model   op.Change[string] `json:"model,omitzero"`
}

// Update changes the organisation of the request.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Organization], error) {
	var o Organization
	err := s.db.Tx(ctx, func(tx db.Querier) (err error) {
		if o, err = get(ctx, tx, access.Org(ctx)); err != nil {
			return err
		}
		if err := in.Check(o.UpdatedAt); err != nil {
			return err
		}
		if o, err = s.applyPatch(ctx, o, in.Body); err != nil {
			return err
		}
		if err := checkNotice(ctx, tx, o, in.Body); err != nil {
			return err
		}
		if err := update(ctx, tx, o); err != nil {
			return fmt.Errorf("update organisation: %w", err)
		}
		db.OnCommit(tx, func() { s.bus.Publish(Changed, o.ID) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(s.withDerived(o), o.UpdatedAt)
}

// applyPatch applies a patch and checks the result.
func (s *Service) applyPatch(ctx context.Context, o Organization, p Patch) (Organization, error) {
	before := o
	p.Name.Apply(&o.Name)
	p.Country.Apply(&o.Country)
	p.Timezone.Apply(&o.Timezone)
	p.Language.Apply(&o.Language)
	chosen, err := s.settingsDocument(ctx, p)
	if err != nil {
		return o, err
	}
	if e, ok := o.storedSettings["emergency"].(map[string]any); ok && p.Emergency.V.Location.Set {
		delete(e, "location") // a new location replaces the old one as a whole
	}
	o.storedSettings = merge(o.storedSettings, chosen)
	o.Country, _ = Country(o.Country)
	emergency := o.Emergency.Status
	if o.Settings, err = effective(o.Country, o.storedSettings); err != nil {
		return o, err
	}
	o.Emergency.Status = emergency
	if wrong := slices.Concat(o.check(), checkRecordingLaw(before, o), p.AI.V.check()); len(wrong) > 0 {
		return o, op.Invalid(wrong...)
	}
	o.UpdatedAt = db.At(s.now())
	return o, nil
}

// settingsDocument returns the settings of a patch as a JSON object.
func (s *Service) settingsDocument(ctx context.Context, p Patch) (map[string]any, error) {
	p.Name, p.Country = op.Change[string]{}, op.Change[string]{}
	p.Timezone, p.Language = op.Change[string]{}, op.Change[string]{}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	var document map[string]any
	if err := json.Unmarshal(b, &document); err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	s.setAcknowledgedAt(document)
	s.setSilentAcknowledged(ctx, document)
	return document, nil
}

// setSilentAcknowledged replaces silent_acknowledged by the time of the acknowledgement and who gave it.
func (s *Service) setSilentAcknowledged(ctx context.Context, document map[string]any) {
	r, ok := document["recording"].(map[string]any)
	if !ok {
		return
	}
	yes, given := r["silent_acknowledged"]
	if !given {
		return
	}
	delete(r, "silent_acknowledged")
	r["silent_acknowledged_at"], r["silent_acknowledged_by"] = nil, nil
	if yes == true {
		by, _ := access.From(ctx)
		r["silent_acknowledged_at"] = db.At(s.now()).String()
		r["silent_acknowledged_by"] = firstNonEmpty(by.UserID, by.KeyID)
	}
}

// checkNotice refuses audio for the recording notice that the organisation does not have.
func checkNotice(ctx context.Context, q db.Querier, o Organization, p Patch) error {
	id := o.Recording.AnnounceAudioID
	if id == nil || !p.Recording.V.AnnounceAudioID.Set {
		return nil
	}
	var n int
	if err := q.QueryRow(ctx, `SELECT COUNT(*) FROM audio WHERE org_id = $1 AND id = $2`, o.ID, *id).Scan(&n); err != nil {
		return fmt.Errorf("find audio: %w", err)
	}
	if n == 0 {
		return op.Invalid(op.Field("recording.announce_audio_id", "not_found", "there is no such audio; upload it with POST /audio"))
	}
	return nil
}

// setAcknowledgedAt replaces acknowledged by the time of the acknowledgement.
func (s *Service) setAcknowledgedAt(document map[string]any) {
	e, ok := document["emergency"].(map[string]any)
	if !ok {
		return
	}
	if yes, given := e["acknowledged"]; given {
		delete(e, "acknowledged")
		e["acknowledged_at"] = nil
		if yes == true {
			e["acknowledged_at"] = db.At(s.now()).String()
		}
	}
}
