package user

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// The settings that people change themselves, with their own credential. They give no rights: role, extension, queues, skills and
// recording stay with users.update.

const ownSettingsAbout = "What is not given stays. Role, extension, queues and recording are changed by an administrator. " +
	"Programs that act for the user (OAuth) need `calls:write`."

// Settings are the settings that a user may change.
type Settings struct {
	Timezone         *string   `json:"timezone" doc:"null: that of the organisation"`
	Language         *string   `json:"language" doc:"null: that of the organisation"`
	OutboundNumberID *string   `json:"outbound_number_id" doc:"The number that calls of the user show; null: that of GET /me/numbers with shown"`
	RingStrategy     string    `json:"ring_strategy" enum:"all_devices,in_order"`
	Forward          Forward   `json:"forward"`
	Voicemail        Voicemail `json:"voicemail"`
	DND              DND       `json:"dnd" doc:"Changed by PUT /users/{id}/dnd"`
}

func settingsOf(u User) Settings {
	return Settings{Timezone: u.Timezone, Language: u.Language, OutboundNumberID: u.OutboundNumberID, RingStrategy: u.RingStrategy,
		Forward: u.Forward, Voicemail: u.Voicemail, DND: u.DND}
}

// OwnSettings returns the settings of the credential's user.
func (s *Service) OwnSettings(ctx context.Context, _ *struct{}) (*op.Out[Settings], error) {
	p, _ := access.From(ctx)
	u, err := s.Get(ctx, s.db.Read(ctx), p.OrgID, p.UserID)
	if err != nil {
		return nil, notFound(err)
	}
	return op.Versioned(settingsOf(u), u.UpdatedAt)
}

// OwnSettingsIn is the input of ChangeOwnSettings.
type OwnSettingsIn struct{ Body SettingsPatch }

// SettingsPatch is a merge patch of the own settings.
type SettingsPatch struct {
	Timezone         op.Change[string]         `json:"timezone,omitzero"`
	Language         op.Change[string]         `json:"language,omitzero"`
	OutboundNumberID op.Change[string]         `json:"outbound_number_id,omitzero"`
	RingStrategy     op.Change[string]         `json:"ring_strategy,omitzero"`
	Forward          op.Change[ForwardPatch]   `json:"forward,omitzero"`
	Voicemail        op.Change[VoicemailPatch] `json:"voicemail,omitzero"`
}

// ChangeOwnSettings changes the settings of the credential's user, under the checks of Update.
func (s *Service) ChangeOwnSettings(ctx context.Context, in *OwnSettingsIn) (*op.Out[Settings], error) {
	p, _ := access.From(ctx)
	if p.Kind == access.OAuthToken && !access.CallsWrite.Need().MetBy(p.Scopes) {
		return nil, op.MissingScope(ctx, access.CallsWrite)
	}
	b := in.Body
	patch := Patch{Timezone: b.Timezone, Language: b.Language, OutboundNumberID: b.OutboundNumberID, RingStrategy: b.RingStrategy,
		Forward: b.Forward, Voicemail: b.Voicemail}
	out, err := s.change(ctx, p.UserID, op.Match{}, func(u *User) (queues op.Change[[]string], err error) {
		patch.apply(u)
		return queues, nil
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Settings]{Body: settingsOf(out.Body), ETag: out.ETag}, nil
}
