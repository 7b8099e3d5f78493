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

// This file is how a call's beginning and answer are sure before their commit: who is told of them must not wait for it.

// kept is an entry of the journal: one of these. What a restart needs stands behind the change it belongs to, or in an entry of its own, on a
// line of its own, as it is: it is as long as all the rest, and JSON inside JSON is read through again.
type kept struct {
	Begin   *New         `json:"begin,omitempty"`
	Change  *keptChange  `json:"change,omitempty"`
	Dialogs *keptDialogs `json:"dialogs,omitempty"`
}

// keptDialogs names the change that what a restart needs belongs to.
type keptDialogs struct {
	Of   keptOf
	text []byte
}

type keptOf struct {
	Org, ID  string
	Revision int
}

// keptChange is a change whose events can be read again.
type keptChange struct {
	Change
	Events []event.CallAnswered
}

// SureBegin keeps the beginning of a call until settle is called, once it is committed: a process that is killed before finds it again at its start. ok is
// false where it cannot: it is sure once it is committed, as everything else.
func (s *Service) SureBegin(n New) (settle func(), ok bool) { return s.sure(kept{Begin: &n}) }

// SureChange is SureBegin for a change, which may tell of nothing but an answer.
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

// SureDialogs keeps what a restart needs of a change that SureChange kept without it.
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
		s.log().Debug("not in the journal, its commit is waited for", "err", err)
		return nothing, false
	}
	return settle, true
}

// Replay writes what the journal had of calls and the database has not, in the order in which it was kept. It is for a start, before
// Dialogs and Recover. Writing it twice has the effect of once. What can never be written, because its organisation is gone or nobody can
// read it, is told in the log and left out: it must not keep the server from starting.
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
			s.log().Error("an entry of the journal belongs to nobody", "err", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("write what the journal had of calls: %w", err)
		}
	}
	return nil
}

// readAll reads what the journal had, what a restart needs with the changes it belongs to. Where such a change is not there, the
// database has both.
func (s *Service) readAll(entries [][]byte) (all []kept) {
	changes := map[keptOf]*keptChange{}
	for _, b := range entries {
		k, err := read(b)
		if err != nil {
			s.log().Error("an entry of the journal cannot be read", "err", err)
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

// beginOnce begins a call that is not begun.
func (s *Service) beginOnce(ctx context.Context, n New) error {
	var one int
	err := s.DB.Read(ctx).QueryRow(ctx, `SELECT 1 FROM calls WHERE org_id = $1 AND id = $2`, n.Org, n.ID).Scan(&one)
	if db.IsNone(err) {
		return s.Begin(ctx, n)
	}
	return err
}
