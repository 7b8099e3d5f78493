package erasure

import (
	"cmp"
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// Operations returns the API operations of erasure and export.
func (s *Service) Operations() []op.Operation {
	return append([]op.Operation{
		op.New("memory.erase", "DELETE /memory/callers/{phone}", access.UsersAdmin, "Erase everything that is kept about a number",
			s.erase).
			Status(202),
	}, s.exportOperations()...)
}

// EraseIn is the request of memory.erase.
type EraseIn struct {
	Phone  string `path:"phone" maxLength:"40" doc:"Number, E.164 or as dialled" example:"+14155550100"`
	Reason string `query:"reason" maxLength:"300" doc:"Why, for the record"`
}

// Erasure is an erasure that was started.
type Erasure struct {
	ID    string `json:"erasure_id" example:"era_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Items int    `json:"items" doc:"How many calls, messages, notes and other things are erased"`
}

// erase counts the data about a number and starts its erasure. Data under legal hold is kept and not counted.
func (s *Service) erase(ctx context.Context, in *EraseIn) (*op.Out[Erasure], error) {
	org := access.Org(ctx)
	phone, err := s.externalNumber(ctx, org, in.Phone, op.NotFound("caller: not a telephone number"))
	if err != nil {
		return nil, err
	}
	p, _ := access.From(ctx)
	var e Erasure
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
		e, err = s.Begin(ctx, tx, org, phone, in.Reason, cmp.Or(p.UserID, p.KeyID))
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(e)
}

// Begin starts the erasure of a number in E.164, in each of its spellings, in the caller's transaction. by is the id of the requesting user
// or key.
func (s *Service) Begin(ctx context.Context, tx db.Querier, org, phone, reason, by string) (Erasure, error) {
	e := Erasure{ID: db.NewID("era")}
	for _, k := range s.cfg.Stores {
		for _, spelling := range number.AllSpellings([]string{phone}) {
			n, err := k.Count(ctx, tx, org, spelling)
			if err != nil {
				return e, err
			}
			e.Items += n
		}
	}
	if err := s.insert(ctx, tx, org, e.ID, phone, reason, by, e.Items); err != nil {
		return e, err
	}
	return e, s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Kind: eraseKind, Args: jobArgs{e.ID},
		UniqueKey: eraseKind + " " + e.ID})
}

// externalNumber parses a number. It returns unknown if the text is no number, and an error if the number belongs to the organisation.
func (s *Service) externalNumber(ctx context.Context, org, text string, unknown error) (string, error) {
	phone, ok, err := s.cfg.Numbers.ParseNumber(ctx, org, text)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", unknown
	}
	for _, spelling := range number.AllSpellings([]string{phone}) {
		own, err := s.cfg.Numbers.IsOwnNumber(ctx, org, spelling)
		if err == nil && own {
			err = op.Invalid(op.Field("phone", "own_number", "this is a number of your organisation: what is kept is about those who call it"))
		}
		if err != nil {
			return "", err
		}
	}
	return phone, nil
}
