package user

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of users.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("users.list", "GET /users", access.UsersAdmin, "List users", s.List),
		op.New("users.create", "POST /users", access.UsersAdmin, "Add a user", s.Add).Status(201).Fails("extension_taken").
			Grants("role").MayNeedConfirmation(),
		op.New("users.get", "GET /users/{id}", access.UsersAdmin, "Get one user", s.Show),
		op.New("users.update", "PATCH /users/{id}", access.UsersAdmin, "Change a user", s.Update).Fails("extension_taken").
			Grants("role", "email", "voicemail", "status").MayNeedConfirmation(),
		op.Delete("users.delete", "DELETE /users/{id}", access.UsersAdmin, "Remove a user", s.Remove).Grants().
			MayNeedConfirmation(),
		op.New("users.invite", "POST /users/{id}/invite", access.UsersAdmin, "Invite a user again",
			s.Invite).Status(202).Fails("not_enabled").Grants().MayNeedConfirmation(),
		op.New("users.dnd", "PUT /users/{id}/dnd", access.UsersAdmin, "Switch do-not-disturb", s.SetDND).ForSelf(),
		op.New("me.settings.get", "GET /me/settings", access.Any, "Show the own settings", s.OwnSettings).ForPerson(),
		op.New("me.settings.update", "PATCH /me/settings", access.Any, "Change the own settings", s.ChangeOwnSettings).ForPerson().
			About(ownSettingsAbout),
		op.New("me.preferences.get", "GET /me/preferences", access.Any, "Show what a console keeps for the user",
			s.Preferences).ForPerson(),
		op.New("me.preferences.set", "PUT /me/preferences", access.Any, "Replace what a console keeps for the user",
			s.SetPreferences).ForPerson().About(preferencesAbout),
	}
}

// ListIn selects users.
type ListIn struct {
	op.Paging
	Role     []string `query:"role" enum:"owner,admin,supervisor,agent,viewer"`
	Status   []string `query:"status" enum:"invited,active,suspended,removed" doc:"All but removed ones unless given"`
	Q        string   `query:"q" maxLength:"120" doc:"Part of a name or e-mail address, or an extension"`
	Presence []string `query:"presence" enum:"available,ringing,busy,wrap_up,away,dnd,offline" doc:"What they are doing now"`
	Include  []string `query:"include" enum:"presence,devices" doc:"Both are part of every record; naming them changes nothing"`
}

// List returns users in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[User]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.db.Read(ctx), access.Org(ctx)
	by := filter{roles: in.Role, statuses: in.Status, q: in.Q, after: after.ID, limit: in.Limit}
	rows, err := s.listWithDetails(ctx, q, org, by, in.Presence)
	if err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, rows, func(u User) op.Position { return op.Position{ID: u.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) {
		if len(in.Presence) == 0 {
			return by.query(org).Count(ctx, q)
		}
		by.after, by.limit = "", math.MaxInt32
		all, err := s.listWithDetails(ctx, q, org, by, in.Presence)
		return len(all), err
	})
}

// listWithDetails reads users with the fields from other packages, up to one more than the limit. Presence is not a
// column, so a filter by presence reads pages until enough users match.
func (s *Service) listWithDetails(ctx context.Context, q db.Querier, org string, by filter, presence []string) (found []User, err error) {
	want := by.limit
	for {
		by.limit = min(want, 500)
		rows, err := list(ctx, q, org, by)
		if err != nil {
			return nil, err
		}
		more := len(rows) > by.limit
		if err := s.withDetails(ctx, q, org, rows); err != nil {
			return nil, err
		}
		if len(presence) == 0 {
			return rows, nil
		}
		for _, u := range rows[:min(len(rows), by.limit)] {
			if by.after = u.ID; slices.Contains(presence, u.Presence.Status) {
				found = append(found, u)
			}
		}
		if !more || len(found) > want {
			return found, nil
		}
	}
}

// AddIn is the input of Add.
type AddIn struct{ Body Fresh }

// Fresh describes a new user.
type Fresh struct {
	Email            string         `json:"email" example:"ada@example.com"`
	FirstName        string         `json:"first_name" example:"Ada"`
	LastName         string         `json:"last_name,omitempty" example:"Lovelace"`
	Role             string         `json:"role,omitempty" default:"agent" doc:"owner, admin, supervisor, agent or viewer"`
	Extension        string         `json:"extension,omitempty" doc:"2 to 6 digits; the lowest free one from 100 on unless given"`
	QueueIDs         []string       `json:"queue_ids,omitempty"`
	Skills           map[string]int `json:"skills,omitempty"`
	OutboundNumberID string         `json:"outbound_number_id,omitempty"`
	Timezone         string         `json:"timezone,omitempty"`
	Language         string         `json:"language,omitempty"`
	SendInvite       *bool          `json:"send_invite,omitempty" default:"true" doc:"Invite the user by mail, or by the link in the answer"`
	ProvisionSIP     *bool          `json:"provision_sip,omitempty" default:"true" doc:"Make a phone with SIP credentials, returned once"`
}

// user returns the record of a new user.
func (n Fresh) user(org string, now db.Time) User {
	u := User{ID: db.NewID("usr"), OrgID: org, Email: n.Email, FirstName: n.FirstName, LastName: n.LastName,
		Name: fullName(n.FirstName, n.LastName), Role: n.Role, Status: "active", Extension: db.Null(n.Extension).Ptr(),
		OutboundNumberID: db.Null(n.OutboundNumberID).Ptr(), Timezone: db.Null(n.Timezone).Ptr(),
		Language: db.Null(n.Language).Ptr(), Skills: n.Skills, RingStrategy: "all_devices", RecordingMode: "inherit",
		Voicemail:       Voicemail{EmailAudio: AudioAttached},
		DirectNumberIDs: []string{}, QueueIDs: []string{}, Devices: []Device{}, CreatedAt: now, UpdatedAt: now}
	if u.Skills == nil {
		u.Skills = map[string]int{}
	}
	if u.Role == "" {
		u.Role = "agent"
	}
	return u
}

// Add creates a user.
func (s *Service) Add(ctx context.Context, in *AddIn) (*op.Out[User], error) {
	u, err := s.Create(ctx, access.Org(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	return &op.Out[User]{Body: u, Location: op.Prefix + "/users/" + u.ID, ETag: op.Tag(u.UpdatedAt)}, nil
}

// OneIn identifies a user.
type OneIn struct {
	ID string `path:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// Show returns a user, including removed users.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[User], error) {
	u, err := get(ctx, s.db.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, notFound(err)
	}
	return s.respond(ctx, s.db.Read(ctx), u)
}

func (s *Service) respond(ctx context.Context, q db.Querier, u User) (*op.Out[User], error) {
	users := []User{u}
	if err := s.withDetails(ctx, q, u.OrgID, users); err != nil {
		return nil, err
	}
	return op.Versioned(users[0], u.UpdatedAt)
}

func notFound(err error) error {
	if db.IsNone(err) {
		return op.NotFound("user")
	}
	return wrapError(err, "get user")
}

// UpdateIn is the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch of a user.
type Patch struct {
	Email            op.Change[string]         `json:"email,omitzero"`
	FirstName        op.Change[string]         `json:"first_name,omitzero"`
	LastName         op.Change[string]         `json:"last_name,omitzero"`
	Role             op.Change[string]         `json:"role,omitzero"`
	Extension        op.Change[string]         `json:"extension,omitzero"`
	OutboundNumberID op.Change[string]         `json:"outbound_number_id,omitzero"`
	Timezone         op.Change[string]         `json:"timezone,omitzero"`
	Language         op.Change[string]         `json:"language,omitzero"`
	Skills           op.Change[map[string]int] `json:"skills,omitzero"`
	QueueIDs         op.Change[[]string]       `json:"queue_ids,omitzero"`
	RingStrategy     op.Change[string]         `json:"ring_strategy,omitzero"`
	Forward          op.Change[ForwardPatch]   `json:"forward,omitzero"`
	Voicemail        op.Change[VoicemailPatch] `json:"voicemail,omitzero"`
	RecordingMode    op.Change[string]         `json:"recording_mode,omitzero"`
	Status           op.Change[string]         `json:"status,omitzero" doc:"suspended: nothing of the user works but emergency calls; active: it works again"`
}

// ForwardPatch changes Forward.
type ForwardPatch struct {
	Always      op.Change[string] `json:"always,omitzero"`
	Busy        op.Change[string] `json:"busy,omitzero"`
	NoAnswer    op.Change[string] `json:"no_answer,omitzero"`
	Unreachable op.Change[string] `json:"unreachable,omitzero"`

	NoAnswerSeconds op.Change[int] `json:"no_answer_seconds,omitzero" doc:"5 to 120: how long the phones ring before no_answer or voicemail takes the call; null: 25"`
}

// VoicemailPatch changes Voicemail.
type VoicemailPatch struct {
	Enabled         op.Change[bool]   `json:"enabled,omitzero"`
	GreetingAudioID op.Change[string] `json:"greeting_audio_id,omitzero"`
	EmailNotify     op.Change[bool]   `json:"email_notify,omitzero"`
	EmailAudio      op.Change[string] `json:"email_audio,omitzero" doc:"attached: the mails have the sound attached; link: only the link to it. null: attached"`
	PIN             op.Change[string] `json:"pin,omitzero" doc:"4 to 10 digits that the mailbox asks for by telephone; never shown again. null: none"`
}

// Update changes a user.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[User], error) {
	return s.change(ctx, in.ID, in.Match, func(u *User) (op.Change[[]string], error) {
		before := *u
		in.Body.apply(u)
		return in.Body.QueueIDs, s.checkChange(ctx, before, *u)
	})
}

// change changes a user that is not removed, in a transaction, and returns the record afterwards.
func (s *Service) change(ctx context.Context, id string, m op.Match, apply func(*User) (op.Change[[]string], error)) (out *op.Out[User],
	err error) {
	err = s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		u, err := s.Get(ctx, tx, access.Org(ctx), id)
		if err != nil {
			return notFound(err)
		}
		if err := m.Check(u.UpdatedAt); err != nil {
			return err
		}
		was := u.Status
		u.keepOld()
		queues, err := apply(&u)
		if err != nil {
			return err
		}
		if err := s.save(ctx, tx, &u, queues); err != nil {
			return err
		}
		if err := s.statusChanged(ctx, tx, was, u); err != nil {
			return err
		}
		out, err = s.respond(ctx, tx, u)
		return err
	})
	return out, err
}

func (p Patch) apply(u *User) {
	p.Email.Apply(&u.Email)
	p.FirstName.Apply(&u.FirstName)
	p.LastName.Apply(&u.LastName)
	p.Role.Apply(&u.Role)
	applyText(p.Extension, &u.Extension)
	applyText(p.OutboundNumberID, &u.OutboundNumberID)
	applyText(p.Timezone, &u.Timezone)
	applyText(p.Language, &u.Language)
	p.RingStrategy.Apply(&u.RingStrategy)
	p.RecordingMode.Apply(&u.RecordingMode)
	if p.Status.Set && (p.Status.V != "invited" || u.Status != "invited") {
		u.Status = strings.TrimPrefix(p.Status.V, "invited") // a user cannot become invited again
	}
	if p.Skills.Set {
		u.Skills = map[string]int{}
		for name, level := range p.Skills.V {
			u.Skills[name] = level
		}
	}
	p.forward(u)
	p.voicemail(u)
}

func (p Patch) forward(u *User) {
	if p.Forward.Null {
		u.Forward = Forward{}
	}
	applyText(p.Forward.V.Always, &u.Forward.Always)
	applyText(p.Forward.V.Busy, &u.Forward.Busy)
	applyText(p.Forward.V.NoAnswer, &u.Forward.NoAnswer)
	applyText(p.Forward.V.Unreachable, &u.Forward.Unreachable)
	if c := p.Forward.V.NoAnswerSeconds; c.Set {
		u.Forward.NoAnswerSeconds = nil
		if !c.Null {
			u.Forward.NoAnswerSeconds = &c.V
		}
	}
}

func (p Patch) voicemail(u *User) {
	if p.Voicemail.Null {
		u.Voicemail = Voicemail{EmailAudio: AudioAttached}
	}
	p.Voicemail.V.Enabled.Apply(&u.Voicemail.Enabled)
	applyText(p.Voicemail.V.GreetingAudioID, &u.Voicemail.GreetingAudioID)
	p.Voicemail.V.EmailNotify.Apply(&u.Voicemail.EmailNotify)
	if c := p.Voicemail.V.EmailAudio; c.Set {
		u.Voicemail.EmailAudio = cmp.Or(c.V, AudioAttached)
	}
	if pin := p.Voicemail.V.PIN; pin.Set || p.Voicemail.Null {
		u.pin, u.Voicemail.PINSet = &pin.V, pin.V != ""
	}
}

// applyText applies a change to a field that may be null.
func applyText(c op.Change[string], to **string) {
	if c.Set {
		*to = db.Null(c.V).Ptr()
	}
}

// RemoveIn identifies the user to remove, and the user who takes over.
type RemoveIn struct {
	OneIn
	op.Match
	ReassignTo string `query:"reassign_to" doc:"The user who gets the numbers of the removed one"`
}

// Remove ends a user's phones, keys and extension. The history stays.
func (s *Service) Remove(ctx context.Context, in *RemoveIn) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		u, err := s.Get(ctx, tx, access.Org(ctx), in.ID)
		if err != nil {
			return notFound(err)
		}
		if err := in.Check(u.UpdatedAt); err != nil {
			return err
		}
		if err := s.checkRemove(ctx, u); err != nil {
			return err
		}
		if in.ReassignTo != "" {
			_, err := s.Get(ctx, tx, access.Org(ctx), in.ReassignTo)
			if db.IsNone(err) || in.ReassignTo == in.ID {
				return op.Invalid(op.Field("reassign_to", "not_found", "no such user to take over"))
			}
			if err != nil {
				return notFound(err)
			}
		}
		used, err := s.config.Destinations.PointingAtUser(ctx, tx, u)
		if err != nil {
			return fmt.Errorf("find what leads to the user: %w", err)
		}
		if len(used) > 0 {
			return op.InUse("calls are still led to the user; lead them elsewhere first, or suspend the user until then", used...)
		}
		return s.remove(ctx, tx, u, in.ReassignTo)
	})
}

// DNDIn is the input of SetDND.
type DNDIn struct {
	OneIn
	Body DNDBody
}

// DNDBody holds the do-not-disturb setting.
type DNDBody struct {
	Enabled bool    `json:"enabled"`
	Until   db.Time `json:"until,omitzero" doc:"It ends by itself at this time"`
}

// SetDND switches do-not-disturb on or off.
func (s *Service) SetDND(ctx context.Context, in *DNDIn) (*op.Out[User], error) {
	if in.Body.Enabled && !in.Body.Until.IsZero() && !in.Body.Until.After(s.now()) {
		return nil, op.Invalid(op.Field("until", "in_the_past", "must be in the future"))
	}
	return s.change(ctx, in.ID, op.Match{}, func(u *User) (queues op.Change[[]string], err error) {
		u.DND = DND{Enabled: in.Body.Enabled}
		if in.Body.Enabled {
			u.DND.Until = in.Body.Until
		}
		return queues, nil
	})
}
