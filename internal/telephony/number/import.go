package number

import (
	"context"
	"fmt"
	"mime"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// The limits of an import.
const (
	maxImport     = maxBlock // numbers
	maxImportBody = 4 << 20  // bytes of CSV
	maxImportJSON = 1 << 20  // bytes
)

// ImportIn holds the input of Import: a CSV or JSON body, distinguished by the media type.
type ImportIn struct {
	ContentType string `header:"Content-Type"`
	TrunkID     string `query:"trunk_id" maxLength:"40" doc:"The trunk of numbers that name none"`
	DryRun      bool   `query:"dry_run" doc:"Check everything, and change nothing"`
	RawBody     []byte
}

// Batch lists numbers that the organisation owns, individually or as a block. The other members apply to all of them.
type Batch struct {
	Numbers          []string `json:"numbers,omitempty" doc:"E.164, or as dialled in the organisation's country; at most 10000"`
	Range            *Range   `json:"range,omitempty"`
	TrunkID          string   `json:"trunk_id,omitempty" maxLength:"40" doc:"The trunk their calls come over"`
	FlowID           string   `json:"flow_id,omitempty" maxLength:"40"`
	UserID           string   `json:"user_id,omitempty" maxLength:"40"`
	QueueID          string   `json:"queue_id,omitempty" maxLength:"40"`
	Label            string   `json:"label,omitempty" maxLength:"120"`
	SMSEnabled       bool     `json:"sms_enabled,omitempty"`
	EmergencyAddress string   `json:"emergency_address,omitempty" maxLength:"500"`
	DryRun           bool     `json:"dry_run,omitempty"`
}

// Range is a block of numbers of equal length.
type Range struct {
	From string `json:"from" doc:"The first, such as +442079460100"`
	To   string `json:"to" doc:"The last"`
}

// Imported is the result of an import.
type Imported struct {
	DryRun  bool          `json:"dry_run"`
	Count   int           `json:"count"`
	Numbers []ImportedOne `json:"numbers" nullable:"false" doc:"In the order they were given"`
}

// ImportedOne is a number that was added, or would be in a dry run.
type ImportedOne struct {
	ID       *string `json:"id" doc:"null in a dry run"`
	Number   string  `json:"number"`
	Country  string  `json:"country"`
	Locality *string `json:"locality"`
	Type     string  `json:"type" enum:"local,mobile,national,toll_free,short_code"`
}

// importLine is one number of an import and its position in the request.
type importLine struct {
	position string // such as lines[7], numbers[3] or range
	userRef  string // CSV only: an id, an extension or an e-mail address
	Fresh
}

// field returns the name of a member of a line for violations.
func (l importLine) field(name string) string {
	if strings.HasPrefix(l.position, "lines[") {
		return l.position + "." + name
	}
	if name == "number" {
		return l.position
	}
	return name
}

// Import adds numbers that the organisation owns already, all or none. It reports the violations of every line. The
// numbers are validated before the transaction begins, because other transactions would have to wait.
func (s *Service) Import(ctx context.Context, in *ImportIn) (*op.Out[Imported], error) {
	o, err := s.orgs.Get(ctx, access.Org(ctx))
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	lines, wrong, err := in.parseBody(o.Country)
	if err != nil {
		return nil, err
	}
	b, more, err := s.buildBatch(ctx, o, lines)
	if err != nil {
		return nil, err
	}
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	out := Imported{DryRun: in.DryRun}
	err = s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		err := s.orgs.CheckQuotaMany(ctx, tx, o.ID, org.Numbers, len(b.numbers), func() (int, error) { return countNumbers(ctx, tx, o.ID) })
		if err != nil || in.DryRun {
			return err
		}
		return s.insertBatch(ctx, tx, b)
	})
	if err != nil {
		return nil, err
	}
	out.setNumbers(b.numbers)
	r := &op.Out[Imported]{Body: out}
	if in.DryRun {
		r.Status = 200
	}
	return r, nil
}

func (i *Imported) setNumbers(numbers []Number) {
	i.Count, i.Numbers = len(numbers), make([]ImportedOne, len(numbers))
	for k, n := range numbers {
		i.Numbers[k] = ImportedOne{Number: n.Number, Country: n.Country, Locality: n.Locality, Type: n.Type}
		if !i.DryRun {
			i.Numbers[k].ID = &numbers[k].ID
		}
	}
}

// parseBody reads the body as CSV or JSON.
func (in *ImportIn) parseBody(country string) ([]importLine, []op.Violation, error) {
	kind, _, err := mime.ParseMediaType(in.ContentType)
	switch {
	case err == nil && kind == "text/csv":
		all, wrong := readTable(in.RawBody, in.TrunkID)
		return all, wrong, nil
	case err == nil && kind == "application/json":
		return in.parseJSON(country)
	}
	return nil, nil, op.Fail("unsupported_media_type", "send text/csv with a line of headings, or application/json")
}

// parseJSON reads a JSON body.
func (in *ImportIn) parseJSON(country string) ([]importLine, []op.Violation, error) {
	if len(in.RawBody) > maxImportJSON {
		return nil, nil, op.Fail("payload_too_large", "a JSON body may have 1 MB; send larger lists as a table")
	}
	var b Batch
	if err := op.DecodeStrict(in.RawBody, &b); err != nil {
		return nil, nil, err
	}
	if b.TrunkID == "" {
		b.TrunkID = in.TrunkID
	}
	in.DryRun = in.DryRun || b.DryRun
	wrong := b.check()
	numbers, at := b.Numbers, func(i int) string { return fmt.Sprintf("numbers[%d]", i) }
	if b.Range != nil && len(wrong) == 0 {
		at = func(int) string { return "range" }
		var bad *op.Violation
		if numbers, bad = blockOf("range", b.Range.From, b.Range.To, country); bad != nil {
			wrong = append(wrong, *bad)
		}
	}
	if len(numbers) > maxImport {
		numbers = nil
	}
	lines := make([]importLine, len(numbers))
	for i, n := range numbers {
		lines[i] = importLine{position: at(i), Fresh: Fresh{Number: n, TrunkID: b.TrunkID, FlowID: b.FlowID, UserID: b.UserID,
			QueueID: b.QueueID, Label: b.Label, SMSEnabled: b.SMSEnabled, Emergency: FreshEmergency{b.EmergencyAddress}}}
	}
	return lines, wrong, nil
}

func (b Batch) check() (wrong []op.Violation) {
	switch {
	case b.Range != nil && len(b.Numbers) > 0:
		wrong = append(wrong, op.Field("range", "ambiguous", "give either range or numbers"))
	case b.Range == nil && len(b.Numbers) == 0:
		wrong = append(wrong, op.Field("numbers", "required", "give numbers, or a range"))
	case len(b.Numbers) > maxImport:
		wrong = append(wrong, op.Field("numbers", "out_of_range", fmt.Sprintf("at most %d numbers at once", maxImport)))
	}
	return wrong
}
