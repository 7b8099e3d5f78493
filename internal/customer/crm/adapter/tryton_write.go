package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/customer/contact"
)

// Upsert writes a contact as a party.
func (t *tryton) Upsert(ctx context.Context, key, externalID string, c contact.Contact) (WriteResult, error) {
	return t.Merge(ctx, key, externalID, "", c)
}

// Merge writes a contact as a party with its numbers and e-mail addresses. A party with the same name and one of the contact's numbers or
// addresses is reused. So a retry after a lost answer creates no duplicate.
func (t *tryton) Merge(ctx context.Context, _, externalID, base string, c contact.Contact) (WriteResult, error) {
	ours := t.cardFieldsOf(c)
	if externalID == "" {
		id, err := t.findParty(ctx, ours)
		if err != nil {
			return WriteResult{}, err
		}
		if id == 0 {
			return t.create(ctx, ours)
		}
		externalID = strconv.Itoa(id)
	}
	id, err := trytonID(externalID)
	if err != nil {
		return WriteResult{}, err
	}
	var was *cardFields
	if base != "" {
		if was = new(cardFields); json.Unmarshal([]byte(base), was) != nil {
			was = nil
		}
	}
	return t.updateParty(ctx, id, ours, was)
}

// cardFieldsOf returns the fields of a contact that Tryton stores.
func (t *tryton) cardFieldsOf(c contact.Contact) cardFields {
	s := cardFieldsOf(c)
	return cardFields{Name: s.Name, Phones: s.Phones, Emails: s.Emails}
}

// findParty returns the id of the existing party of a contact; 0 if there is none.
func (t *tryton) findParty(ctx context.Context, s cardFields) (int, error) {
	values := slices.Concat(s.Phones, s.Emails)
	if len(values) == 0 {
		return 0, nil
	}
	var found []trytonMechanism
	where := []any{[]any{"value_compact", "in", values}, []any{"party.name", "=", s.Name}}
	err := t.call(ctx, "model.party.contact_mechanism.search_read", &found, where, 0, 1, nil, []string{"party.name"})
	if err != nil || len(found) == 0 || found[0].Party == nil {
		return 0, err
	}
	return found[0].Party.ID, nil
}

func (t *tryton) create(ctx context.Context, s cardFields) (WriteResult, error) {
	party := map[string]any{"name": s.Name}
	if more := newMechanisms(s.Phones, s.Emails); len(more) > 0 {
		party["contact_mechanisms"] = []any{[]any{"create", more}}
	}
	var ids []int
	if err := t.call(ctx, "model.party.party.create", &ids, []any{party}); err != nil {
		return WriteResult{}, err
	}
	if len(ids) != 1 {
		return WriteResult{}, fmt.Errorf("%w: it made %d parties", ErrRefused, len(ids))
	}
	id := strconv.Itoa(ids[0])
	return WriteResult{ExternalID: id, URL: t.recordURL(id), Base: s.baseJSON()}, nil
}

// newMechanisms returns the values of mechanisms to create.
func newMechanisms(phones, emails []string) (all []map[string]any) {
	for _, p := range phones {
		all = append(all, map[string]any{"type": "phone", "value": p})
	}
	for _, e := range emails {
		all = append(all, map[string]any{"type": "email", "value": e})
	}
	return all
}

// updateParty merges a contact into its party.
func (t *tryton) updateParty(ctx context.Context, id int, ours cardFields, base *cardFields) (WriteResult, error) {
	theirs, all, err := t.readParty(ctx, id)
	if err != nil {
		return WriteResult{}, err
	}
	merged, conflicts := ours.mergeFields(theirs, base)
	text := strconv.Itoa(id)
	out := WriteResult{ExternalID: text, URL: t.recordURL(text), Base: merged.baseJSON()}
	if len(conflicts) > 0 {
		out.Conflict = "changed on both sides, and left as the system has it: " + strings.Join(conflicts, ", ")
	}
	values := partyChanges(merged, theirs, all)
	if len(values) == 0 {
		return out, nil
	}
	var nothing any
	return out, t.call(ctx, "model.party.party.write", &nothing, []int{id}, values)
}

// readParty reads the fields of a party and its mechanisms.
func (t *tryton) readParty(ctx context.Context, id int) (s cardFields, all []trytonMechanism, err error) {
	var parties []struct {
		Name string `json:"name"`
	}
	if err = t.call(ctx, "model.party.party.read", &parties, []int{id}, []string{"name"}); err != nil || len(parties) == 0 {
		return s, nil, err
	}
	s.Name = parties[0].Name
	where := []any{[]any{"party", "=", id}}
	const most = 200
	if err = t.call(ctx, "model.party.contact_mechanism.search_read", &all, where, 0, most, nil, []string{"type", "value"}); err != nil {
		return s, nil, err
	}
	for _, m := range all {
		switch {
		case slices.Contains(trytonPhones, m.Type):
			s.Phones = append(s.Phones, m.Value)
		case slices.Contains(trytonEmails, m.Type):
			s.Emails = append(s.Emails, m.Value)
		}
	}
	return s, all, nil
}

// partyChanges returns the values to write so that a party has the merged fields.
func partyChanges(merged, theirs cardFields, all []trytonMechanism) map[string]any {
	values, steps := map[string]any{}, []any{}
	if merged.Name != theirs.Name {
		values["name"] = merged.Name
	}
	fresh := func(now, was []string) []string {
		return slices.DeleteFunc(slices.Clone(now), func(x string) bool { return slices.Contains(was, x) })
	}
	if more := newMechanisms(fresh(merged.Phones, theirs.Phones), fresh(merged.Emails, theirs.Emails)); len(more) > 0 {
		steps = append(steps, []any{"create", more})
	}
	var gone []int
	for _, m := range all {
		phone, email := slices.Contains(trytonPhones, m.Type), slices.Contains(trytonEmails, m.Type)
		if phone && !slices.Contains(merged.Phones, m.Value) || email && !slices.Contains(merged.Emails, m.Value) {
			gone = append(gone, m.ID)
		}
	}
	if len(gone) > 0 {
		steps = append(steps, []any{"delete", gone})
	}
	if len(steps) > 0 {
		values["contact_mechanisms"] = steps
	}
	return values
}

// NeedsRecord is true: a note belongs to a party.
func (t *tryton) NeedsRecord() bool { return true }

// LogNeedsRecord is true: a call is written as a note of a party.
func (t *tryton) LogNeedsRecord() bool { return true }

// Note writes a note to a party.
func (t *tryton) Note(ctx context.Context, _ string, n Note) (WriteResult, error) {
	text := n.Text + "\n\n" + n.Author + ", " + n.At.Format("2006-01-02 15:04 MST") + " · " + n.ID
	return t.writeNote(ctx, n.ExternalID, n.ID, "", text)
}

// LogCall writes a call as a note to a party, or changes the note.
func (t *tryton) LogCall(ctx context.Context, _ string, c CallLog) (WriteResult, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s call, %s, %s: %s to %s, %d s", c.Direction, c.Status, c.StartedAt.Format("2006-01-02 15:04 MST"), c.From, c.To,
		c.Talk)
	for _, line := range [][2]string{{"\nAgent: ", c.Agent}, {"\nDisposition: ", c.Disposition}, {"\nRecording: ", c.RecordingURL},
		{"\n\n", c.Summary}} {
		if line[1] != "" {
			b.WriteString(line[0] + line[1])
		}
	}
	if t.s.Transcripts && c.Transcript != "" {
		b.WriteString("\n\n" + c.Transcript)
	}
	return t.writeNote(ctx, c.ExternalID, c.ID, c.RecordID, b.String()+"\n\n· "+c.ID)
}

// writeNote writes a text as a note of a party, or changes a note. The text ends with subject, by which a retry finds
// a note whose answer was lost.
func (t *tryton) writeNote(ctx context.Context, party, subject, record, text string) (WriteResult, error) {
	if record == "" {
		id, err := trytonID(party)
		if err != nil {
			return WriteResult{}, err
		}
		resource := fmt.Sprintf("party.party,%d", id)
		var found []int
		err = t.call(ctx, "model.ir.note.search", &found, []any{[]any{"resource", "=", resource},
			[]any{"message", "like", "%· " + subject}}, 0, 1, nil)
		if err != nil {
			return WriteResult{}, err
		}
		if len(found) == 0 {
			err = t.call(ctx, "model.ir.note.create", &found, []any{map[string]any{"resource": resource, "message": text}})
			if err != nil || len(found) == 0 {
				return WriteResult{}, err
			}
			return WriteResult{ExternalID: strconv.Itoa(found[0])}, nil
		}
		record = strconv.Itoa(found[0])
	}
	id, err := trytonID(record)
	if err != nil {
		return WriteResult{}, err
	}
	var nothing any
	return WriteResult{ExternalID: record}, t.call(ctx, "model.ir.note.write", &nothing, []int{id}, map[string]any{"message": text})
}
