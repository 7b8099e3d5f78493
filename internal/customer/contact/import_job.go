package contact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// importBatch is the number of records per transaction. It is small, so that other writers wait only briefly.
const importBatch = 100

// RegisterJobs registers the job handler of imports.
func (s *Service) RegisterJobs(r *job.Runner) { r.Handle(importKind, s.runImport) }

// Options returns the options of the job runner.
func Options() job.Options { return job.Options{Workers: 2, PerLane: 1, Timeout: importTimeout} }

// importRecord is a record of a file.
type importRecord struct {
	line       int
	contact    Contact
	violations []op.Violation // if not empty, the record cannot be imported
}

// errOtherProcess means that another process has continued the import.
var errOtherProcess = errors.New("another process has continued the import")

// runImport reads the file from the point where the last attempt stopped. The progress is written in the transaction
// of the contacts.
func (s *Service) runImport(ctx context.Context, j job.Job) error {
	var args importArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	i, err := getImport(ctx, s.cfg.DB.Read(ctx), j.Org, args.ID)
	if db.IsNone(err) || err == nil && !i.FinishedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.readFile(ctx, &i)
	switch {
	case err == nil, errors.Is(err, errOtherProcess):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errFile), j.Last():
		return s.fail(ctx, &i, err)
	}
	return err
}

// fail ends an import that cannot be finished. Its imported contacts stay.
func (s *Service) fail(ctx context.Context, i *Import, cause error) error {
	why := "the file could not be read"
	if errors.Is(cause, errFile) {
		why = cause.Error()
	}
	return s.finish(ctx, i, "failed", &why)
}

func (s *Service) finish(ctx context.Context, i *Import, status string, why *string) error {
	i.Status, i.Error, i.FinishedAt = status, why, db.At(s.cfg.Clock.Now())
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		_, err := i.saveProgress(ctx, tx, i.Done)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish import: %w", err)
	}
	if err := s.cfg.Files.Delete(ctx, i.blob); err != nil {
		s.cfg.Log.Warn("file of an import not removed", "import", i.ID, "err", err)
	}
	return nil
}

// readFile imports the rest of the file, batch by batch.
func (s *Service) readFile(ctx context.Context, i *Import) error {
	o, err := s.cfg.Orgs.Get(ctx, i.org)
	if err != nil {
		return err
	}
	file, _, err := s.cfg.Files.Open(ctx, i.blob)
	if err != nil {
		return fmt.Errorf("open the file of an import: %w", err)
	}
	defer file.Close()
	next, err := newRecordReader(file, i.Format)
	if err != nil {
		return err
	}
	if i.StartedAt.IsZero() {
		i.StartedAt = db.At(s.cfg.Clock.Now())
	}
	for skip := i.Done; ; {
		batch, err := readBatch(next, &skip)
		if err != nil {
			return err
		}
		if len(batch) == 0 && i.Done == 0 {
			return errEmpty
		}
		if len(batch) == 0 {
			return s.finish(ctx, i, "completed", nil)
		}
		if err := s.addBatch(ctx, i, batch, o.Country); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// newRecordReader returns a function that reads a file record by record and returns io.EOF at its end.
func newRecordReader(file io.Reader, format string) (func() (importRecord, error), error) {
	if format == "vcard" {
		return newVCardReader(file).next, nil
	}
	t, err := newTable(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFile, err)
	}
	return t.next, nil
}

// errFile means that the file is malformed. errEmpty means that it has text, and no record.
var (
	errFile  = errors.New("the file cannot be read")
	errEmpty = fmt.Errorf("%w: it has no records; a table has them below the headings, a vCard between BEGIN:VCARD and END:VCARD", errFile)
)

// readBatch reads the next batch, after skipping the records that are imported already.
func readBatch(next func() (importRecord, error), skip *int) (batch []importRecord, err error) {
	for len(batch) < importBatch {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return batch, nil
		}
		if err != nil {
			return nil, err
		}
		if *skip > 0 {
			*skip--
			continue
		}
		batch = append(batch, r)
	}
	return batch, nil
}

// addBatch writes a batch and the progress in one transaction.
func (s *Service) addBatch(ctx context.Context, i *Import, batch []importRecord, country string) error {
	was, next := i.Done, *i
	next.Errors = slices.Clone(i.Errors)
	next.Status, next.Done = "running", was+len(batch)
	var good []importRecord
	for _, r := range batch {
		if len(r.violations) == 0 { // what could be read of an unreadable record says nothing
			r.violations = r.contact.check(country, true)
		}
		if len(r.violations) > 0 {
			next.addErrors(r)
			continue
		}
		good = append(good, r)
	}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.addRecords(ctx, tx, &next, good, country); err != nil {
			return err
		}
		mine, err := next.saveProgress(ctx, tx, was)
		if err == nil && !mine {
			err = errOtherProcess
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("import contacts: %w", err)
	}
	*i = next
	return nil
}

func (i *Import) addErrors(r importRecord) {
	i.Failed++
	for _, v := range r.violations {
		if len(i.Errors) < maxErrors {
			i.Errors = append(i.Errors, LineError{Line: r.line, Field: v.Field, Code: v.Code, Message: v.Message})
		}
	}
}

// addRecords writes the valid records of a batch. Duplicates are treated according to the import.
func (s *Service) addRecords(ctx context.Context, tx db.Querier, i *Import, good []importRecord, country string) error {
	there, err := s.existing(ctx, tx, i, good, country)
	if err != nil {
		return err
	}
	var fresh []Contact
	changed := map[string]bool{}
	place := map[string]int{} // index in fresh by identity key
	for _, r := range good {
		keys := identityKeys(r.contact, country)
		known := firstOf(there, keys)
		at, twin := firstPlace(place, keys)
		switch {
		case i.Duplicates == "create", known == nil && !twin:
			for _, k := range keys {
				place[k] = len(fresh)
			}
			fresh = append(fresh, s.newImported(r.contact, i))
			i.Created++
		case i.Duplicates == "skip":
			i.Skipped++
		case known != nil:
			known.applyImport(r.contact, country)
			changed[known.ID] = true
			i.Updated++
		default:
			fresh[at].applyImport(r.contact, country)
			i.Updated++
		}
	}
	if err := s.insertAll(ctx, tx, i.org, fresh, country); err != nil {
		return err
	}
	return s.updateAll(ctx, tx, there, changed, country)
}

func (s *Service) newImported(c Contact, i *Import) Contact {
	c.ID, c.OrgID, c.Source, c.CreatedAt, c.UpdatedAt = db.NewID("con"), i.org, "import", db.At(s.cfg.Clock.Now()), db.At(s.cfg.Clock.Now())
	return c
}

func (s *Service) updateAll(ctx context.Context, tx db.Querier, there map[string]*Contact, changed map[string]bool, country string) error {
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		for _, c := range there {
			if c.ID != id {
				continue
			}
			before, err := getContact(ctx, tx, c.OrgID, id)
			if err != nil {
				return err
			}
			c.UpdatedAt = db.At(s.cfg.Clock.Now())
			if err := s.update(ctx, tx, before, *c, country); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// applyImport merges the record of a file into a contact. Values of the file replace the old ones; missing values are
// kept.
func (c *Contact) applyImport(o Contact, country string) {
	old := *c
	c.FirstName, c.LastName = old.FirstName, old.LastName
	if o.FirstName != "" || o.LastName != "" {
		c.FirstName, c.LastName = o.FirstName, o.LastName
	}
	for _, f := range []struct{ to, from *string }{{&c.Company, &o.Company}, {&c.Title, &o.Title}} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	custom := maps.Clone(old.Custom)
	maps.Copy(custom, o.Custom)
	o.Custom = nil
	if c.absorb(o, country); len(c.Phones) > maxPhones || len(c.Emails) > maxEmails {
		c.Phones, c.Emails = old.Phones, old.Emails
	}
	if len(custom) <= maxCustom {
		c.Custom = custom
	}
}

// identityKeys returns the keys by which a contact is recognised: its e-mail addresses, and its numbers without an
// extension, because numbers with one are shared.
func identityKeys(c Contact, country string) (keys []string) {
	for _, p := range c.Phones {
		if n := p.parse(country); n.isComplete() && n.extension == "" {
			keys = append(keys, number.AllSpellings([]string{n.e164})...)
		}
	}
	for _, e := range c.Emails {
		keys = append(keys, strings.ToLower(e.Value))
	}
	return keys
}

func firstOf(there map[string]*Contact, keys []string) *Contact {
	for _, k := range keys {
		if c := there[k]; c != nil {
			return c
		}
	}
	return nil
}

func firstPlace(place map[string]int, keys []string) (int, bool) {
	for _, k := range keys {
		if at, ok := place[k]; ok {
			return at, true
		}
	}
	return 0, false
}

// existing returns the contacts that have an identity key of the batch, by key.
func (s *Service) existing(ctx context.Context, tx db.Querier, i *Import, good []importRecord, country string) (map[string]*Contact,
	error) {
	out := map[string]*Contact{}
	if i.Duplicates == "create" {
		return out, nil
	}
	var keys []string
	for _, r := range good {
		keys = append(keys, identityKeys(r.contact, country)...)
	}
	owners := map[string]string{}
	for part := range slices.Chunk(keys, 64) {
		if err := ownersOf(ctx, tx, i.org, part, owners); err != nil {
			return nil, err
		}
	}
	byID := map[string]*Contact{}
	for k, id := range owners {
		if byID[id] == nil {
			c, err := getContact(ctx, tx, i.org, id)
			if err != nil {
				return nil, err
			}
			byID[id] = &c
		}
		out[k] = byID[id]
	}
	return out, nil
}

// ownersOf adds the contacts that have the given numbers and addresses to owners; of several contacts the oldest.
func ownersOf(ctx context.Context, q db.Querier, org string, keys []string, owners map[string]string) error {
	for _, by := range []struct{ column, text string }{
		{"number", `SELECT number, min(record_id) FROM contact_phones WHERE org_id = $1 AND source = '' AND extension = ''`},
		{"email", `SELECT email, min(record_id) FROM contact_emails WHERE org_id = $1 AND source = ''`},
	} {
		statement, args := db.Where(by.text, org).In(by.column, keys).SQL()
		rows, err := q.Query(ctx, statement+" GROUP BY "+by.column, args...)
		if err != nil {
			return fmt.Errorf("find existing contacts: %w", err)
		}
		for rows.Next() {
			var k, id string
			if err := rows.Scan(&k, &id); err != nil {
				return errors.Join(err, rows.Close())
			}
			owners[k] = id
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return fmt.Errorf("find existing contacts: %w", err)
		}
	}
	return nil
}
