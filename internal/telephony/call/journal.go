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

// journalEntry is one entry of the journal; exactly one member is set. The resume data (dialogs) of a change follows the JSON on a line
// of its own. It is in the entry of its change, or in a separate one. It is as long as all the rest, and as JSON inside JSON it would be
// parsed a second time.
type journalEntry struct {
	Begin   *New              `json:"begin,omitempty"`
	Change  *journaledChange  `json:"change,omitempty"`
	Dialogs *journaledDialogs `json:"dialogs,omitempty"`
}

// journaledDialogs names the change to which the resume data belongs.
type journaledDialogs struct {
	Of   changeKey
	text []byte
}

type changeKey struct {
	Org, ID  string
	Revision int
}

// journaledChange is a change with events that can be unmarshalled: only call.answered.
type journaledChange struct {
	Change
	Events []event.CallAnswered
}

// JournalBegin appends the beginning of a call to the journal. Call settle once it is committed. If the process is
// killed before, Replay finds it at the next start. ok is false if the journal cannot take it; the beginning is then
// durable once it is committed.
func (s *Service) JournalBegin(n New) (settle func(), ok bool) {
	return s.appendJournal(journalEntry{Begin: &n})
}

// JournalChange is JournalBegin for a change. ok is false if the change has events other than call.answered.
func (s *Service) JournalChange(c Change) (settle func(), ok bool) {
	k := journaledChange{Change: c}
	k.Dialogs = nil
	for _, e := range c.Events {
		a, answered := e.(event.CallAnswered)
		if !answered {
			return noSettle, false
		}
		k.Events = append(k.Events, a)
	}
	return s.appendJournal(journalEntry{Change: &k}, c.Dialogs...)
}

// JournalDialogs appends the resume data of a change that JournalChange stored without it.
func (s *Service) JournalDialogs(c Change) (settle func(), ok bool) {
	if len(c.Dialogs) == 0 {
		return noSettle, true
	}
	return s.appendJournal(journalEntry{Dialogs: &journaledDialogs{Of: changeKey{c.Org, c.ID, c.Revision}}}, c.Dialogs...)
}

func noSettle() {}

func (s *Service) appendJournal(k journalEntry, dialogs ...byte) (settle func(), ok bool) {
	if s.cfg.Journal == nil {
		return noSettle, false
	}
	b, err := json.Marshal(k)
	if len(dialogs) > 0 {
		b = slices.Concat(b, []byte{'\n'}, dialogs)
	}
	if err == nil {
		settle, err = s.cfg.Journal.Append(b)
	}
	if err != nil {
		s.log().Debug("not in the journal, waiting for the commit", "err", err)
		return noSettle, false
	}
	return settle, true
}

// Replay writes the entries of the journal that are missing in the database, in the order in which they were
// appended. Call it at start, before ResumableCalls and Recover. It is idempotent. An entry that can never be written
// is logged and skipped, so that it does not prevent the start. Reasons are a deleted organisation and an entry that
// cannot be parsed.
func (s *Service) Replay(ctx context.Context, entries [][]byte) error {
	for _, k := range s.readJournal(entries) {
		var err error
		switch {
		case k.Begin != nil:
			err = s.beginIfMissing(ctx, *k.Begin)
		case k.Change != nil:
			err = s.Change(ctx, k.Change.change())
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
func (s *Service) readJournal(entries [][]byte) (all []journalEntry) {
	changes := map[changeKey]*journaledChange{}
	for _, b := range entries {
		k, err := readJournalEntry(b)
		if err != nil {
			s.log().Error("journal entry skipped: it cannot be parsed", "err", err)
			continue
		}
		if c := k.Change; c != nil {
			changes[changeKey{c.Org, c.ID, c.Revision}] = c
		}
		if d := k.Dialogs; d == nil {
			all = append(all, k)
		} else if c := changes[d.Of]; c != nil {
			c.Dialogs = d.text
		}
	}
	return all
}

func readJournalEntry(b []byte) (k journalEntry, err error) {
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

func (k journaledChange) change() Change {
	c := k.Change
	c.Events = nil
	for _, e := range k.Events {
		c.Events = append(c.Events, e)
	}
	return c
}

// beginIfMissing begins a call unless its row exists.
func (s *Service) beginIfMissing(ctx context.Context, n New) error {
	var one int
	err := s.cfg.DB.Read(ctx).QueryRow(ctx, `SELECT 1 FROM calls WHERE org_id = $1 AND id = $2`, n.Org, n.ID).Scan(&one)
	if db.IsNone(err) {
		return s.Begin(ctx, n)
	}
	return err
}
