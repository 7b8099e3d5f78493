package op

import (
	"context"
	"time"

	"soniq/internal/platform/access"
)

// Sensitive changes by a browser session need a password or a code that was entered recently. A session that somebody else took over can
// thus not be made into lasting access. Keys and tokens are not asked: they have no person beside them.

// ConfirmedFor is how long a password or code counts for sensitive changes.
const ConfirmedFor = 15 * time.Minute

// ConfirmPath is the page on which the person enters the password or a code again.
const ConfirmPath = "/account/confirm"

// Sensitive marks an operation that needs a recent password or code of a browser session.
func (o Operation) Sensitive() Operation {
	o.sensitive = true
	return o.MayNeedConfirmation()
}

// MayNeedConfirmation declares that some requests of the operation are sensitive. Its function calls CheckConfirmed.
func (o Operation) MayNeedConfirmation() Operation { return o.Fails("reauthentication_required") }

// CheckConfirmed returns an error if the context's principal is a browser session whose user entered a password or code too long ago.
func CheckConfirmed(ctx context.Context) error {
	if e := unconfirmed(ctx); e != nil {
		return e
	}
	return nil
}

func unconfirmed(ctx context.Context) *Error {
	if p, _ := access.From(ctx); !p.Unconfirmed {
		return nil
	}
	return &Error{Code: "reauthentication_required",
		Detail: "this change needs a password or code that was entered within the last 15 minutes; enter it at " + ConfirmPath +
			" and repeat the request",
		Extra: map[string]any{"confirm_at": ConfirmPath, "max_age_seconds": int(ConfirmedFor / time.Second)}}
}
