package audit

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// PhoneAction is an audited action without an API request, by telephone.
type PhoneAction struct {
	Org, Operation string // such as "voicemail.pin"
	CallID         string // the call of the action
	UserID         string // user of the phone; empty for external callers
	Number         string // number of the caller
	Record         string // changed record
	Status         int    // HTTP status of the equivalent request, such as 403 if denied
	Code           string
}

// WritePhoneAction writes a line of the audit log.
func (s *Service) WritePhoneAction(ctx context.Context, tx db.Querier, l PhoneAction, at db.Time) error {
	const q = `INSERT INTO audit (org_id, id, at, operation, target, key_id, key_name, credential, user_id, source, request_id,
		record_id, status, code, actor_org_id, on_behalf_of) VALUES ($1, $2, $3, $4, $5, '', $6, 'telephone', $7, '', $8, $9, $10, $11,
		NULL, NULL)`
	_, err := tx.Exec(ctx, q, l.Org, db.NewID("adt"), at, l.Operation, "CALL /calls/"+l.CallID, l.Number, db.Null(l.UserID), l.CallID,
		db.Null(l.Record), l.Status, db.Null(l.Code))
	if err != nil {
		return fmt.Errorf("write audit line: %w", err)
	}
	return nil
}
