package crm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// syncTimeout bounds one attempt of a write.
const syncTime = 30 * time.Second

// errNoRecord means that the system has no record of the person, and takes notes or calls only for a record.
var errNoRecord = errors.New("the system knows nobody with this number")

// errSubjectGone means that the note, call or contact was deleted.
var errGone = errors.New("it is gone")

// runSync is the job that writes one sync to its system and stores the result.
func (s *Service) sync(ctx context.Context, j job.Job) error {
	var args syncArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	x, err := getSync(ctx, s.DB.Read(ctx), j.Org, args.ID)
	if db.IsNone(err) || err == nil && x.Status == "synced" {
		return nil // disconnected meanwhile, or written by an attempt with a lost result
	}
	if err != nil {
		return err
	}
	seen := x.UpdatedAt
	x.again = j.Attempt > 1 || x.Attempts > 0
	out, err := s.write(ctx, &x)
	retry := x.took(out, err, j.Last())
	x.UpdatedAt = db.At(s.Now())
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := x.result(ctx, tx, seen); err != nil || x.Kind != "contact" {
			return err
		}
		return putRef(ctx, tx, x, out)
	})
	return retry
}

// applyResult sets the status after an attempt. It returns nil if the sync is finished, or the error to retry with.
func (x *Sync) took(out Written, err error, last bool) error {
	var busy *Busy
	switch {
	case err == nil:
		x.Status, x.Error = "synced", nil
		if out.ExternalID != "" {
			x.ExternalID = &out.ExternalID
		}
		x.Error = db.Null(out.Conflict).Ptr()
		return nil
	case errors.Is(err, errNoRecord), errors.Is(err, errGone):
		x.Status = "skipped"
	case errors.Is(err, ErrRefused), errors.Is(err, ErrAuth), last:
		x.Status = "failed"
	default:
		x.Status = "pending"
	}
	text := words(err)
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
func (s *Service) write(ctx context.Context, x *Sync) (Written, error) {
	c, err := connection(ctx, s.DB.Read(ctx), x.org, x.ConnectionID)
	if err == nil {
		err = s.open(&c)
	}
	if err != nil {
		return Written{}, err
	}
	l, err := s.line(c)
	if err != nil {
		return Written{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	switch can := l.adapter.Can(); {
	case x.Kind == "note" && can.Notes:
		return s.writeNote(ctx, l.adapter, *x)
	case x.Kind == "call" && can.CallLog:
		return s.writeCall(ctx, l.adapter, x)
	case x.Kind == "contact" && (can.Create || can.Update):
		return s.writeContact(ctx, l.adapter, *x)
	}
	return Written{}, fmt.Errorf("%w: the connection does not take it any more", ErrRefused)
}

func (s *Service) writeContact(ctx context.Context, a Adapter, x Sync) (Written, error) {
	c, err := s.Contacts.Find(ctx, x.org, x.SubjectID)
	if db.IsNone(err) {
		return Written{}, errGone
	}
	if err != nil {
		return Written{}, err
	}
	id, base, err := refOf(ctx, s.DB.Read(ctx), x.org, c.ID, x.ConnectionID)
	if err != nil {
		return Written{}, err
	}
	if id == "" && !a.Can().Create {
		return Written{}, errNoRecord
	}
	key := x.ID + "-" + strconv.FormatInt(c.UpdatedAt.UnixMicro(), 36)
	if m, ok := a.(Merger); ok {
		return m.Merge(ctx, key, id, base, c)
	}
	return a.(Keeper).Upsert(ctx, key, id, c)
}

func (s *Service) writeNote(ctx context.Context, a Adapter, x Sync) (Written, error) {
	callID := ""
	if x.CallID != nil {
		callID = *x.CallID
	}
	n, err := s.Note(ctx, x.org, x.SubjectID, callID)
	if db.IsNone(err) {
		return Written{}, errGone
	}
	if err != nil {
		return Written{}, err
	}
	whom, err := s.whom(ctx, a, x, a.(Noter).NeedsRecord())
	if err != nil {
		return Written{}, err
	}
	return a.(Noter).Note(ctx, x.ID, Note{Whom: whom, ID: n.ID, Text: n.Body, Author: n.Author.Name, CallID: callID, At: n.CreatedAt})
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// personFor finds the person that a sync is about, and, if needed, the id of the system's record.
func (s *Service) whom(ctx context.Context, a Adapter, x Sync, needsRecord bool) (Whom, error) {
	w := Whom{ContactID: value(x.ContactID), Again: x.again}
	if x.CallID != nil {
		c, err := s.Call(ctx, x.org, *x.CallID)
		if err != nil && !db.IsNone(err) {
			return w, err
		}
		if w.Phone = c.ExternalNumber(); c.Contact != nil {
			w.ContactID, w.Name, w.Company = c.Contact.ID, c.Contact.Name, c.Contact.Company
		}
	}
	if w.ContactID != "" {
		if err := s.fillWhom(ctx, x, &w); err != nil {
			return w, err
		}
	}
	if w.ExternalID != "" || !needsRecord {
		return w, nil
	}
	return w, s.search(ctx, a, x.org, &w)
}

func (s *Service) fillWhom(ctx context.Context, x Sync, w *Whom) error {
	c, err := s.Contacts.Find(ctx, x.org, w.ContactID)
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
	w.ExternalID, _, err = refOf(ctx, s.DB.Read(ctx), x.org, c.ID, x.ConnectionID)
	return err
}

// searchRecord looks up the record with the person's number in the system.
func (s *Service) search(ctx context.Context, a Adapter, org string, w *Whom) error {
	f, ok := a.(Finder)
	if !ok || !a.Can().Lookup || w.Phone == "" {
		return errNoRecord
	}
	q, err := s.Contacts.Query(ctx, org, w.Phone)
	if err != nil {
		return errNoRecord
	}
	found, err := f.Lookup(ctx, q)
	if err != nil && !errors.Is(err, contact.ErrSkipped) {
		return err
	}
	for _, r := range found {
		if r.ExternalID != "" && s.Contacts.Fits(q, r) {
			w.ExternalID = r.ExternalID
			return nil
		}
	}
	return errNoRecord
}
