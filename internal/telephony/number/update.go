package number

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// UpdateIn holds the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of a number. Setting one of flow_id, user_id and queue_id replaces the other two.
type Patch struct {
	Label         op.Change[string]         `json:"label,omitzero"`
	TrunkID       op.Change[string]         `json:"trunk_id,omitzero"`
	FlowID        op.Change[string]         `json:"flow_id,omitzero"`
	UserID        op.Change[string]         `json:"user_id,omitzero"`
	QueueID       op.Change[string]         `json:"queue_id,omitzero"`
	SMSEnabled    op.Change[bool]           `json:"sms_enabled,omitzero"`
	CallerIDName  op.Change[string]         `json:"caller_id_name,omitzero"`
	RecordingMode op.Change[string]         `json:"recording_mode,omitzero"`
	Fallback      op.Change[string]         `json:"fallback,omitzero"`
	Emergency     op.Change[EmergencyPatch] `json:"emergency,omitzero"`
}

// EmergencyPatch is a merge patch of Emergency.
type EmergencyPatch struct {
	Address op.Change[string] `json:"address,omitzero"`
}

// Update changes a number.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Number], error) {
	var n Number
	err := s.db.Tx(ctx, func(tx db.Querier) (err error) {
		if n, err = s.findUnreleased(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := in.Check(n.UpdatedAt); err != nil {
			return err
		}
		if n.Status == releasing {
			return op.State("the number is being given back", n.Status)
		}
		if err := s.applyPatch(ctx, tx, &n, in.Body); err != nil {
			return err
		}
		if err := updateNumber(ctx, tx, n); err != nil {
			return fmt.Errorf("change number: %w", err)
		}
		s.publishChanged(tx, n.Number)
		n, err = getNumber(ctx, tx, n.OrgID, n.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(n, n.UpdatedAt)
}

// applyPatch applies and validates a patch.
func (s *Service) applyPatch(ctx context.Context, tx db.Querier, n *Number, p Patch) error {
	p.apply(n)
	wrong, err := s.validateTargets(ctx, tx, p.TrunkID.V, p.UserID.V, p.FlowID.V, p.QueueID.V)
	if err != nil {
		return err
	}
	if p.Fallback.V != "" && s.CheckTarget != nil {
		if no, err := s.CheckTarget(ctx, n.OrgID, p.Fallback.V); err != nil {
			return err
		} else if no != "" {
			wrong = append(wrong, op.Field("fallback", "invalid_destination", no))
		}
	}
	if n.TrunkID == nil && n.Provider == ProviderOwn && n.Status != "porting_in" {
		wrong = append(wrong, op.Field("trunk_id", "required", "a number needs a trunk"))
	}
	if len([]rune(n.Label)) > 120 {
		wrong = append(wrong, op.Field("label", "invalid_length", "must have at most 120 characters"))
	}
	if n.CallerIDName != nil && len([]rune(*n.CallerIDName)) > 60 {
		wrong = append(wrong, op.Field("caller_id_name", "invalid_length", "must have at most 60 characters"))
	}
	if !slices.Contains([]string{"inherit", "on", "off"}, n.RecordingMode) {
		wrong = append(wrong, op.Field("recording_mode", "invalid_value", "must be inherit, on or off"))
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	n.UpdatedAt = db.At(s.now())
	return nil
}

func (p Patch) apply(n *Number) {
	p.Label.Apply(&n.Label)
	applyNullable(p.TrunkID, &n.TrunkID)
	p.assign(n)
	p.SMSEnabled.Apply(&n.SMSEnabled)
	applyNullable(p.CallerIDName, &n.CallerIDName)
	p.RecordingMode.Apply(&n.RecordingMode)
	applyNullable(p.Fallback, &n.Fallback)
	if p.Emergency.Null {
		n.Emergency.Address = nil
	}
	applyNullable(p.Emergency.V.Address, &n.Emergency.Address)
}

// assign changes the assignment. An empty id removes an assignment of that type.
func (p Patch) assign(n *Number) {
	all := []struct {
		kind   string
		change op.Change[string]
	}{{"user", p.UserID}, {"flow", p.FlowID}, {"queue", p.QueueID}}
	for _, c := range all {
		if c.change.Set && c.change.V == "" && n.AssignedTo.Type == c.kind {
			n.AssignedTo = Assignment{Type: "none"}
		}
	}
	for _, c := range all {
		if c.change.V != "" {
			n.AssignedTo = Assignment{Type: c.kind, ID: &c.change.V}
		}
	}
}

// applyNullable applies a change to a nullable member.
func applyNullable(c op.Change[string], to **string) {
	if c.Set {
		*to = db.Null(c.V).Ptr()
	}
}
