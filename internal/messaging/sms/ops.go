package sms

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// Operations returns the API operations on messages.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("sms.create", "POST /sms", access.SMSWrite, "Send an SMS", s.Create).Status(201),
		op.New("sms.list", "GET /sms", access.SMSRead, "List messages, newest first", s.List),
		op.New("sms.get", "GET /sms/{id}", access.SMSRead, "Get one message", s.Get),
		op.New("sms.cancel", "POST /sms/{id}/cancel", access.SMSWrite, "Cancel a message that is to be sent later", s.Cancel),
		op.New("sms.conversations.list", "GET /sms/conversations", access.SMSRead, "List conversations", s.Conversations),
		op.New("sms.conversations.get", "GET /sms/conversations/{id}", access.SMSRead, "Get one conversation", s.GetConversation),
		op.New("sms.conversations.messages", "GET /sms/conversations/{id}/messages", access.SMSRead, "List the messages of a conversation",
			s.Messages),
		op.New("sms.conversations.update", "PATCH /sms/conversations/{id}", access.SMSWrite, "Change a conversation", s.UpdateConversation),
		op.New("sms.opt_outs.list", "GET /sms/opt-outs", access.SMSRead, "List numbers that opted out", s.OptOuts),
		op.New("sms.opt_outs.create", "POST /sms/opt-outs", access.SMSWrite, "Send a number no more messages", s.CreateOptOut).Status(201),
		op.Delete("sms.opt_outs.delete", "DELETE /sms/opt-outs/{phone}", access.SMSWrite, "Let a number be written to again",
			s.DeleteOptOut),
	}
}

// ListIn is the request for a page of messages.
type ListIn struct {
	op.Paging
	op.Span
	Direction      string   `query:"direction" enum:"inbound,outbound"`
	Status         []string `query:"status" enum:"scheduled,queued,sending,sent,delivered,undelivered,canceled,failed,received"`
	FromNumber     string   `query:"from_number" maxLength:"40"`
	ToNumber       string   `query:"to_number" maxLength:"40"`
	ConversationID string   `query:"conversation_id" maxLength:"40"`
	ContactID      string   `query:"contact_id" maxLength:"40" doc:"Messages with the numbers of this contact"`
	Sort           string   `query:"sort" enum:"-created_at,created_at" default:"-created_at"`
}

func (in ListIn) filter(org string, contact []string) (*db.Filter, error) {
	since, until, err := in.Times()
	f := db.Where(`SELECT `+columns+` FROM messages WHERE org_id = $1`, org).Equal("direction", in.Direction).In("status", in.Status).
		In("from_number", spellingsOf(in.FromNumber)).In("to_number", spellingsOf(in.ToNumber)).Equal("conversation_id", in.ConversationID).
		Between("created_at", since, until)
	if in.ContactID != "" {
		filterNumbers(f, contact)
	}
	return f, err
}

// spellingsOf returns the spellings of a number in a query; none for "".
func spellingsOf(text string) []string {
	if text == "" {
		return nil
	}
	return number.AllSpellings([]string{text})
}

// List returns messages, newest first.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Message]], error) {
	at, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q, org := s.cfg.DB.Read(ctx), access.Org(ctx)
	numbers, err := s.numbersOf(ctx, org, in.ContactID)
	if err == nil {
		err = number.StoreForms(ctx, q, org, &in.FromNumber, &in.ToNumber)
	}
	if err != nil {
		return nil, err
	}
	f, err := in.filter(org, numbers)
	if err != nil {
		return nil, err
	}
	all, err := queryMessages(ctx, q, f.Page("created_at", strings.HasPrefix(in.Sort, "-"), at.Int, at.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	return s.page(ctx, in.Paging, all, func() (int, error) {
		f, _ := in.filter(org, numbers)
		return f.Count(ctx, q)
	})
}

func (s *Service) page(ctx context.Context, p op.Paging, all []Message, count func() (int, error)) (*op.Out[op.Page[Message]], error) {
	for i, m := range all {
		all[i].Contact = s.cfg.Contacts.LookupContact(ctx, m.org, m.peer())
	}
	page := op.Paged(ctx, p, all, func(m Message) op.Position { return op.Position{Int: m.CreatedAt.UnixMicro(), ID: m.ID} })
	return op.WithTotal(page, p, count)
}

// OneIn has the id of a message.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"sms_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func (s *Service) find(ctx context.Context, q db.Querier, org, id string) (Message, error) {
	m, err := get(ctx, q, org, id)
	if db.IsNone(err) {
		return m, op.NotFound("message")
	}
	if err != nil {
		return m, fmt.Errorf("get message: %w", err)
	}
	m.Contact = s.cfg.Contacts.LookupContact(ctx, org, m.peer())
	return m, nil
}

// Get returns one message.
func (s *Service) Get(ctx context.Context, in *OneIn) (*op.Out[Message], error) {
	m, err := s.find(ctx, s.cfg.DB.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.OK(m)
}

// Cancel cancels a scheduled message.
func (s *Service) Cancel(ctx context.Context, in *OneIn) (*op.Out[Message], error) {
	var m Message
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
		if m, err = s.find(ctx, tx, access.Org(ctx), in.ID); err != nil {
			return err
		}
		if m.Status == canceled {
			return nil
		}
		before := m.Status
		m.Status = canceled
		moved := false
		if before == scheduled {
			moved, err = s.changeStatus(ctx, tx, &m, scheduled)
		}
		if err == nil && moved {
			err = s.notifyFinal(ctx, tx, m)
		}
		if err == nil && !moved {
			err = op.State("only scheduled messages can be canceled", before)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(m)
}
