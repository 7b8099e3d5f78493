package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Journal entries of calls: they make the beginning and the answer of a call durable before their commit, so that
// signalling does not wait for the commit. Replay writes them to the database after a crash.

// journalEntry is one entry of the journal; exactly one member is set. The resume data (dialogs) of a change follows
// the JSON on a line of its own, in the entry of its change or in a separate entry. It is as long as all the rest,
// and as JSON inside JSON it would be parsed a second time.
type kept struct {
	Begin   *New         `json:"begin,omitempty"`
	Change  *keptChange  `json:"change,omitempty"`
	Dialogs *keptDialogs `json:"dialogs,omitempty"`
}

// journaledDialogs names the change to which the resume data belongs.
type keptDialogs struct {
	Of   keptOf
	text []byte
}

type keptOf struct {
	Org, ID  string
	Revision int
}

// journaledChange is a change with events that can be unmarshalled: only call.answered.
type keptChange struct {
	Change
	Events []event.CallAnswered
}

// JournalBegin appends the beginning of a call to the journal. Call settle once it is committed. If the process is
// killed before, Replay finds it at the next start. ok is false if the journal cannot take it; the beginning is then
// durable once it is committed.
func (s *Service) SureBegin(n New) (settle func(), ok bool) { return s.sure(kept{Begin: &n}) }

// JournalChange is JournalBegin for a change. ok is false if the change has events other than call.answered.
func (s *Service) SureChange(c Change) (settle func(), ok bool) {
	k := keptChange{Change: c}
	k.Dialogs = nil
	for _, e := range c.Events {
		a, answered := e.(event.CallAnswered)
		if !answered {
			return nothing, false
		}
		k.Events = append(k.Events, a)
	}
	return s.sure(kept{Change: &k}, c.Dialogs...)
}

// JournalDialogs appends the resume data of a change that JournalChange stored without it.
func (s *Service) SureDialogs(c Change) (settle func(), ok bool) {
	if len(c.Dialogs) == 0 {
		return nothing, true
	}
	return s.sure(kept{Dialogs: &keptDialogs{Of: keptOf{c.Org, c.ID, c.Revision}}}, c.Dialogs...)
}

func nothing() {}

func (s *Service) sure(k kept, dialogs ...byte) (settle func(), ok bool) {
	if s.Journal == nil {
		return nothing, false
	}
	b, err := json.Marshal(k)
	if len(dialogs) > 0 {
		b = slices.Concat(b, []byte{'\n'}, dialogs)
	}
	if err == nil {
		settle, err = s.Journal.Append(b)
	}
	if err != nil {
		s.log().Debug("not in the journal, waiting for the commit", "err", err)
		return nothing, false
	}
	return settle, true
}

// Replay writes the entries of the journal that are missing in the database, in the order in which they were
// appended. Call it at start, before ResumableCalls and Recover. It is idempotent. An entry that can never be written
// is logged and skipped, so that it does not prevent the start. Reasons are a deleted organisation and an entry that
// cannot be parsed.
func (s *Service) Replay(ctx context.Context, entries [][]byte) error {
	for _, k := range s.readAll(entries) {
		var err error
		switch {
		case k.Begin != nil:
			err = s.beginOnce(ctx, *k.Begin)
		case k.Change != nil:
			err = s.Change(ctx, k.Change.whole())
		}
		if db.IsForeignKey(err) {
			s.log().Error("journal entry skipped: its organisation was deleted", "err", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("replay the journal of calls: %w", err)
		}
	}
	return nil
}

// readJournal parses the entries and attaches resume data to its change. If the change is not in the journal, the
// database has both, and the entry is skipped.
func (s *Service) readAll(entries [][]byte) (all []kept) {
	changes := map[keptOf]*keptChange{}
	for _, b := range entries {
		k, err := read(b)
		if err != nil {
			s.log().Error("journal entry skipped: it cannot be parsed", "err", err)
			continue
		}
		if c := k.Change; c != nil {
			changes[keptOf{c.Org, c.ID, c.Revision}] = c
		}
		if d := k.Dialogs; d == nil {
			all = append(all, k)
		} else if c := changes[d.Of]; c != nil {
			c.Dialogs = d.text
		}
	}
	return all
}

func read(b []byte) (k kept, err error) {
	b, dialogs, _ := bytes.Cut(b, []byte{'\n'})
	if err := json.Unmarshal(b, &k); err != nil {
		return k, err
	}
	switch {
	case len(dialogs) == 0:
	case k.Change != nil:
		k.Change.Dialogs = dialogs
	case k.Dialogs != nil:
		k.Dialogs.text = dialogs
	}
	return k, nil
}

func (k keptChange) whole() Change {
	c := k.Change
	c.Events = nil
	for _, e := range k.Events {
		c.Events = append(c.Events, e)
	}
	return c
}

// beginIfMissing begins a call unless its row exists.
func (s *Service) beginOnce(ctx context.Context, n New) error {
	var one int
	err := s.DB.Read(ctx).QueryRow(ctx, `SELECT 1 FROM calls WHERE org_id = $1 AND id = $2`, n.Org, n.ID).Scan(&one)
	if db.IsNone(err) {
		return s.Begin(ctx, n)
	}
	return err
}
