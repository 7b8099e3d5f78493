package erasure

import (
	"cmp"
	"context"

	"soniq/access"
	"soniq/db"
	"soniq/job"
	"soniq/op"
)

// Operations lists what the outside world can ask of this room.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("memory.erase", "DELETE /memory/callers/{phone}", access.UsersAdmin, "Erase everything that is kept about a number", s.erase).
			Status(202),
	}
}

// EraseIn names a number to be forgotten.
type EraseIn struct {
	Phone  string `path:"phone" maxLength:"40" doc:"Number, E.164 or as dialled" example:"+14155550100"`
	Reason string `query:"reason" maxLength:"300" doc:"Why, for the record"`
}

// An Erasure has begun.
type Erasure struct {
	ID    string `json:"erasure_id" example:"era_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Items int    `json:"items" doc:"How many calls, messages, notes and other things are erased"`
}

// erase counts what is kept about a number and has it erased. What is under legal hold stays, and is not counted.
func (s *Service) erase(ctx context.Context, in *EraseIn) (*op.Out[Erasure], error) {
	org := access.Org(ctx)
	phone, err := s.stranger(ctx, org, in.Phone)
	if err != nil {
		return nil, err
	}
	e := Erasure{ID: db.NewID("era")}
	err = s.DB.Tx(ctx, func(tx db.Querier) error {
		for _, k := range s.Keepers {
			n, err := k.Count(ctx, tx, org, phone)
			if err != nil {
				return err
			}
			e.Items += n
		}
		p, _ := access.From(ctx)
		if err := s.insert(ctx, tx, org, e.ID, phone, in.Reason, cmp.Or(p.UserID, p.KeyID), e.Items); err != nil {
			return err
		}
		return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Kind: eraseKind, Args: reference{e.ID}, UniqueKey: eraseKind + " " + e.ID})
	})
	if err != nil {
		return nil, err
	}
	return op.OK(e)
}

// stranger reads a number that is not the organisation's own.
func (s *Service) stranger(ctx context.Context, org, text string) (string, error) {
	phone, ok, err := s.Number(ctx, org, text)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", op.NotFound("caller: not a telephone number")
	}
	if s.Own == nil {
		return phone, nil
	}
	own, err := s.Own(ctx, org, phone)
	if err == nil && own {
		err = op.Invalid(op.Field("phone", "own_number", "this is a number of your organisation: what is kept is about those who call it"))
	}
	return phone, err
}
