package contact

import (
	"context"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// ListIn is the request of contacts.list.
type ListIn struct {
	op.Paging
	Q            string   `query:"q" maxLength:"120" doc:"Part of a name, a company, a title, a number or an e-mail address. Behind those that have it, the last page lists up to ten contacts with similar names, misspelt or alike in sound, as far as its limit allows; total counts only those that have it"`
	Phone        string   `query:"phone" maxLength:"60" doc:"Who has this number, in whatever way it is written"`
	Email        string   `query:"email" maxLength:"254"`
	Company      string   `query:"company" maxLength:"120" doc:"The whole name, in upper or lower case"`
	Tag          []string `query:"tag" maxItems:"20" doc:"With all of these tags"`
	Source       string   `query:"source" maxLength:"60"`
	UpdatedSince string   `query:"updated_since" maxLength:"40" doc:"RFC 3339, or a date YYYY-MM-DD (UTC)"`
	Sort         string   `query:"sort" enum:"name,-last_contacted_at" default:"name"`
}

// List returns contacts.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Contact]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	country, err := s.country(ctx)
	if err != nil {
		return nil, err
	}
	f, err := in.filter(contactColumns, access.Org(ctx), country)
	if err != nil {
		return nil, err
	}
	q := s.cfg.DB.Read(ctx)
	rows, err := queryContacts(ctx, q, in.page(f(), after))
	if err != nil {
		return nil, err
	}
	if room := in.Limit - len(rows); room > 0 && in.Q != "" {
		more, err := s.similar(ctx, q, access.Org(ctx), in, country)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more[:min(len(more), room)]...)
	}
	shown := make([]*Contact, min(len(rows), in.Limit))
	for i := range shown {
		shown[i] = &rows[i]
	}
	if err := s.fillRefs(ctx, q, access.Org(ctx), shown); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, rows, in.position)
	return op.WithTotal(page, in.Paging, func() (int, error) { return f().Count(ctx, q) })
}

func (in *ListIn) page(f *db.Filter, after op.Position) *db.Filter {
	if in.Sort == "name" {
		return f.Page("sort_name", false, after.Text, after.ID, in.Limit)
	}
	return f.Page("COALESCE(last_contacted_at, 0)", true, after.Int, after.ID, in.Limit)
}

func (in *ListIn) position(c Contact) op.Position {
	if in.Sort == "name" {
		return op.Position{Text: sortName(c), ID: c.ID}
	}
	p := op.Position{ID: c.ID}
	if !c.LastContactedAt.IsZero() {
		p.Int = c.LastContactedAt.UnixMicro()
	}
	return p
}

// filter returns a function that builds the filter anew, once for the page and once for the total.
func (in *ListIn) filter(columns, org, country string) (func() *db.Filter, error) {
	since, _, err := op.Span{Since: in.UpdatedSince}.Times()
	if err != nil {
		return nil, badQuery(op.Field("updated_since", "invalid_time", "must be RFC 3339 such as 2026-01-31T09:30:00Z, or YYYY-MM-DD"))
	}
	return func() *db.Filter {
		f := db.Where(`SELECT `+columns+` FROM contacts WHERE org_id = $1`, org).Equal("source", in.Source).Between("updated_at",
			since, db.Time{})
		if in.Q != "" {
			f.And(hasText, searchPattern(in.Q))
		}
		if in.Company != "" {
			f.And("lower(company) = ?", strings.ToLower(in.Company))
		}
		for _, t := range in.Tag {
			f.And(`tags LIKE ? ESCAPE '\'`, `%"`+db.Escape(strings.ToLower(t))+`"%`)
		}
		if in.Email != "" {
			f.And("id IN (SELECT record_id FROM contact_emails e WHERE e.org_id = contacts.org_id AND e.source = '' AND e.email = ?)",
				strings.ToLower(in.Email))
		}
		if in.Phone != "" {
			n := readNumber(number.FromURL(in.Phone), country)
			given, other := number.Spellings(n.e164)
			f.And("id IN (SELECT record_id FROM contact_phones p WHERE p.org_id = contacts.org_id AND p.source = '' AND (p.number IN (?, ?) AND p.number <> '' OR p.digits = ?))",
				given, other, n.digits)
		}
		return f
	}, nil
}

// hasText is the condition of contacts that contain a text.
const hasText = `search LIKE ? ESCAPE '\'`

func searchPattern(text string) string {
	return "%" + db.Escape(strings.ToLower(strings.TrimSpace(text))) + "%"
}

func badQuery(v op.Violation) error {
	return &op.Error{Code: "invalid_query", Detail: v.Field + ": " + v.Message, Fields: []op.Violation{v}}
}
