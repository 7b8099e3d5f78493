package crm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// syncTimeout bounds one attempt of a write.
const syncTimeout = 30 * time.Second

// errNoRecord means that the system has no record of the person, and takes notes or calls only for a record.
var errNoRecord = errors.New("the system knows nobody with this number")

// errSubjectGone means that the note, call or contact was deleted.
var errSubjectGone = errors.New("it is gone")

// runSync is the job that writes one sync to its system and stores the result.
func (s *Service) runSync(ctx context.Context, j job.Job) error {
	var args syncArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	x, err := getSync(ctx, s.cfg.DB.Read(ctx), j.Org, args.ID)
	if db.IsNone(err) || err == nil && x.Status == "synced" {
		return nil // disconnected meanwhile, or written by an attempt with a lost result
	}
	if err != nil {
		return err
	}
	seen := x.UpdatedAt
	x.isRetry = j.Attempt > 1 || x.Attempts > 0
	out, err := s.writeSync(ctx, &x)
	retry := x.applyResult(out, err, j.Last())
	x.UpdatedAt = db.At(s.cfg.Clock.Now())
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := x.saveResult(ctx, tx, seen); err != nil || x.Kind != "contact" {
			return err
		}
		return putRef(ctx, tx, x, out)
	})
	return retry
}

// applyResult sets the status after an attempt. It returns nil if the sync is finished, or the error to retry with.
func (x *Sync) applyResult(out adapter.WriteResult, err error, last bool) error {
	var busy *adapter.BusyError
	switch {
	case err == nil:
		x.Status, x.Error = "synced", nil
		if out.ExternalID != "" {
			x.ExternalID = &out.ExternalID
		}
		x.Error = db.Null(out.Conflict).Ptr()
		return nil
	case errors.Is(err, errNoRecord), errors.Is(err, errSubjectGone):
		x.Status = "skipped"
	case errors.Is(err, adapter.ErrRefused), errors.Is(err, adapter.ErrAuth), last:
		x.Status = "failed"
	default:
		x.Status = "pending"
	}
	text := errorText(err)
	x.Error = &text
	switch {
	case x.Status != "pending":
		return nil
	case errors.As(err, &busy):
		return &job.Retry{After: busy.After, Cause: err}
	}
	return fmt.Errorf("write %s to %s: %w", x.Kind, x.ConnectionID, err)
}

// writeSync sends the request for a sync.
func (s *Service) writeSync(ctx context.Context, x *Sync) (adapter.WriteResult, error) {
	c, err := getConnection(ctx, s.cfg.DB.Read(ctx), x.org, x.ConnectionID)
	if err == nil {
		err = s.unsealSettings(&c)
	}
	if err != nil {
		return adapter.WriteResult{}, err
	}
	l, err := s.clientFor(c)
	if err != nil {
		return adapter.WriteResult{}, fmt.Errorf("%w: %w", adapter.ErrRefused, err)
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	switch can := l.adapter.Can(); {
	case x.Kind == "note" && can.Notes:
		return s.writeNote(ctx, l.adapter, *x)
	case x.Kind == "call" && can.CallLog:
		return s.writeCall(ctx, l.adapter, c.holder, x)
	case x.Kind == "contact" && (can.Create || can.Update):
		return s.writeContact(ctx, l.adapter, *x)
	}
	return adapter.WriteResult{}, fmt.Errorf("%w: the connection does not take it any more", adapter.ErrRefused)
}

func (s *Service) writeContact(ctx context.Context, a adapter.Adapter, x Sync) (adapter.WriteResult, error) {
	c, err := s.cfg.Contacts.Find(ctx, x.org, x.SubjectID)
	if db.IsNone(err) {
		return adapter.WriteResult{}, errSubjectGone
	}
	if err != nil {
		return adapter.WriteResult{}, err
	}
	id, base, err := externalRef(ctx, s.cfg.DB.Read(ctx), x.org, c.ID, x.ConnectionID)
	if err != nil {
		return adapter.WriteResult{}, err
	}
	if id == "" && !a.Can().Create {
		return adapter.WriteResult{}, errNoRecord
	}
	key := x.ID + "-" + strconv.FormatInt(c.UpdatedAt.UnixMicro(), 36)
	if m, ok := a.(adapter.Merger); ok {
		return m.Merge(ctx, key, id, base, c)
	}
	return a.(adapter.Upserter).Upsert(ctx, key, id, c)
}

func (s *Service) writeNote(ctx context.Context, a adapter.Adapter, x Sync) (adapter.WriteResult, error) {
	callID := ""
	if x.CallID != nil {
		callID = *x.CallID
	}
	n, err := s.cfg.Subjects.Note(ctx, x.org, x.SubjectID, callID)
	if db.IsNone(err) {
		return adapter.WriteResult{}, errSubjectGone
	}
	if err != nil {
		return adapter.WriteResult{}, err
	}
	whom, err := s.personFor(ctx, a, x, a.(adapter.NoteWriter).NeedsRecord())
	if err != nil {
		return adapter.WriteResult{}, err
	}
	return a.(adapter.NoteWriter).Note(ctx, x.ID, adapter.Note{Person: whom, ID: n.ID, Text: n.Body, Author: n.Author.Name, CallID: callID,
		At: n.CreatedAt})
}

// personFor finds the person that a sync is about, and, if needed, the id of the system's record.
func (s *Service) personFor(ctx context.Context, a adapter.Adapter, x Sync, needsRecord bool) (adapter.Person, error) {
	w := adapter.Person{ContactID: deref(x.ContactID), Again: x.isRetry}
	if x.CallID != nil {
		c, err := s.cfg.Subjects.Call(ctx, x.org, *x.CallID)
		if err != nil && !db.IsNone(err) {
			return w, err
		}
		if w.Phone = c.ExternalNumber(); c.Contact != nil {
			w.ContactID, w.Name, w.Company = c.Contact.ID, c.Contact.Name, c.Contact.Company
		}
	}
	if w.ContactID != "" {
		if err := s.fillPerson(ctx, x, &w); err != nil {
			return w, err
		}
	}
	if w.ExternalID != "" || !needsRecord {
		return w, nil
	}
	return w, s.searchRecord(ctx, a, x.org, &w)
}

func (s *Service) fillPerson(ctx context.Context, x Sync, w *adapter.Person) error {
	c, err := s.cfg.Contacts.Find(ctx, x.org, w.ContactID)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.Name, w.Company = c.Name, c.Company; w.Phone == "" && len(c.Phones) > 0 {
		w.Phone = c.Phones[max(0, slices.IndexFunc(c.Phones, func(p contact.Phone) bool { return p.Primary }))].Number
	}
	if len(c.Emails) > 0 {
		w.Email = c.Emails[0].Value
	}
	w.ExternalID, _, err = externalRef(ctx, s.cfg.DB.Read(ctx), x.org, c.ID, x.ConnectionID)
	return err
}

// searchRecord looks up the record with the person's number in the system.
func (s *Service) searchRecord(ctx context.Context, a adapter.Adapter, org string, w *adapter.Person) error {
	f, ok := a.(adapter.Searcher)
	if !ok || !a.Can().Lookup || w.Phone == "" {
		return errNoRecord
	}
	q, err := s.cfg.Contacts.Query(ctx, org, w.Phone)
	if err != nil {
		return errNoRecord
	}
	found, err := f.Lookup(ctx, q)
	if err != nil && !errors.Is(err, contact.ErrSkipped) {
		return err
	}
	for _, r := range found {
		if r.ExternalID != "" && s.cfg.Contacts.Fits(q, r) {
			w.ExternalID = r.ExternalID
			return nil
		}
	}
	return errNoRecord
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
