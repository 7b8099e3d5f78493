package number

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// SearchIn holds the criteria of Search.
type SearchIn struct {
	Country      string   `query:"country" maxLength:"2" doc:"ISO 3166; that of the organisation unless given" example:"GB"`
	AreaCode     string   `query:"area_code" maxLength:"10" doc:"Digits after the country code"`
	Prefix       string   `query:"prefix" maxLength:"15" doc:"Digits with which the number begins, after the country code"`
	Contains     string   `query:"contains" maxLength:"15" doc:"Digits anywhere in it"`
	Locality     string   `query:"locality" maxLength:"120"`
	Type         []string `query:"type" enum:"local,mobile,national,toll_free,short_code"`
	Capabilities []string `query:"capabilities" enum:"voice,sms,mms,fax"`
	Provider     string   `query:"provider" maxLength:"60" doc:"Only this one"`
	Limit        int      `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// Found lists numbers that can be ordered, and the result of each provider.
type Found struct {
	Data     []Available `json:"data" nullable:"false"`
	Searched []Searched  `json:"searched" nullable:"false"`
}

// Searched is the result of the search at one provider.
type Searched struct {
	Provider string  `json:"provider"`
	MS       int     `json:"ms"`
	Status   string  `json:"status" enum:"ok,error,timeout,circuit_open"`
	Error    *string `json:"error" doc:"What went wrong"`
}

// searchTime is the time limit of each provider.
const searchTime = 3 * time.Second

var digitsForm = regexp.MustCompile(`^[0-9]*$`)

// Search searches all providers in parallel, and returns the numbers that arrive in time.
func (s *Service) Search(ctx context.Context, in *SearchIn) (*op.Out[Found], error) {
	o, err := s.orgs.Get(ctx, access.Org(ctx))
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	w := SearchCriteria{Org: o.ID, Country: strings.ToUpper(in.Country), AreaCode: in.AreaCode, Prefix: in.Prefix, Contains: in.Contains,
		Locality: in.Locality, Types: in.Type, Capabilities: in.Capabilities, Limit: in.Limit}
	if w.Country == "" {
		w.Country = o.Country
	}
	providers, err := s.sources(ctx, s.db.Read(ctx), o)
	if err != nil {
		return nil, err
	}
	if err := w.validate(in.Provider, providers); err != nil {
		return nil, err
	}
	answers := make([]providerAnswer, len(providers))
	var all sync.WaitGroup
	for i, p := range providers {
		if in.Provider == "" || in.Provider == p.name {
			all.Go(func() { answers[i] = s.searchProvider(ctx, p, w) })
		}
	}
	all.Wait()
	out := Found{Data: []Available{}, Searched: []Searched{}}
	for _, a := range answers {
		if a.Provider != "" {
			out.Searched = append(out.Searched, a.Searched)
			out.Data = append(out.Data, a.found...)
		}
	}
	out.Data = out.Data[:min(len(out.Data), in.Limit)]
	return op.OK(out)
}

func (w SearchCriteria) validate(only string, providers []numberSource) error {
	var wrong []op.Violation
	if _, ok := org.Country(w.Country); !ok {
		wrong = append(wrong, op.Field("country", "invalid_country", "must be a country code of ISO 3166, such as GB"))
	}
	for field, text := range map[string]string{"area_code": w.AreaCode, "prefix": w.Prefix, "contains": w.Contains} {
		if !digitsForm.MatchString(text) {
			wrong = append(wrong, op.Field(field, "invalid_value", "must be digits"))
		}
	}
	if only != "" && !slices.ContainsFunc(providers, func(p numberSource) bool { return p.name == only }) {
		wrong = append(wrong, op.Field("provider", "not_found", "no such provider"))
	}
	if len(wrong) > 0 {
		return &op.Error{Code: "invalid_query", Detail: wrong[0].Field + ": " + wrong[0].Message, Fields: wrong}
	}
	return nil
}

// numberSource is a source of numbers for an organisation.
type numberSource struct {
	name    string
	api     ProviderAPI
	account Account // account for purchases; its id is "" if none is needed
}

// sources returns the sources of an organisation: its stock first, then providers without and with an account, by
// name. A sandbox has its stock and the sandbox provider only, which no other organisation has.
func (s *Service) sources(ctx context.Context, q db.Querier, o org.Organization) ([]numberSource, error) {
	all := []numberSource{{name: ProviderOwn, api: stockProvider{s}}}
	for name, m := range s.config.Providers {
		if (name == ProviderSandbox) == o.Sandbox() {
			all = append(all, numberSource{name: name, api: m})
		}
	}
	if len(s.config.AccountProviders) > 0 && !o.Sandbox() {
		accounts, err := s.accounts(ctx, q, o.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range accounts {
			if w := s.clientFor(a); a.enabled && w != nil {
				all = append(all, numberSource{a.Provider, w, a})
			}
		}
	}
	slices.SortFunc(all[1:], func(a, b numberSource) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

type providerAnswer struct {
	Searched
	found []Available
}

func (s *Service) searchProvider(ctx context.Context, p numberSource, w SearchCriteria) providerAnswer {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	began := time.Now()
	found, err := p.api.Search(ctx, w)
	a := providerAnswer{Searched{Provider: p.name, MS: int(time.Since(began).Milliseconds()), Status: "ok"}, found}
	if err != nil {
		text := errorText(err)
		a.Status, a.Error = "error", &text
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		a.Status = "timeout"
	case errors.Is(err, errCircuitOpen):
		a.Status = "circuit_open"
	}
	for i := range a.found {
		a.found[i].fillDefaults(p.name, w.Country)
	}
	return a
}

// stockProvider is the number blocks of an organisation as a provider.
type stockProvider struct{ *Service }

// Search returns numbers of the stock that are not in use.
func (s stockProvider) Search(ctx context.Context, w SearchCriteria) ([]Available, error) {
	const text = `SELECT k.number, k.country, k.locality, k.type FROM number_stock k WHERE k.org_id = $1 AND k.country = $2
		AND NOT EXISTS (SELECT 1 FROM numbers n WHERE n.org_id = k.org_id AND n.number = k.number AND n.status
		NOT IN ('released', 'failed', 'port_failed'))`
	f := db.Where(text, w.Org, w.Country).In("k.type", w.Types)
	code := fmt.Sprint(phonenumbers.GetCountryCodeForRegion(w.Country))
	for _, begin := range []string{w.AreaCode, w.Prefix} {
		if begin != "" {
			f.And("k.number LIKE ?", "+"+code+begin+"%")
		}
	}
	if w.Contains != "" {
		f.And("k.number LIKE ?", "%"+w.Contains+"%")
	}
	if w.Locality != "" {
		f.And(`lower(k.locality) LIKE lower(?) ESCAPE '\'`, "%"+db.Escape(w.Locality)+"%")
	}
	if slices.ContainsFunc(w.Capabilities, func(c string) bool { return c != "voice" }) {
		return nil, nil
	}
	limit := f.Arg(w.Limit)
	statement, args := f.SQL()
	rows, err := s.db.Read(ctx).Query(ctx, statement+" ORDER BY k.number LIMIT "+limit, args...)
	if err != nil {
		return nil, fmt.Errorf("search stock: %w", err)
	}
	defer rows.Close()
	var all []Available
	for rows.Next() {
		a := Available{Capabilities: []string{"voice"}}
		if err := rows.Scan(&a.Number, &a.Country, &a.Locality, &a.Type); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

// Order is not called: a number of the stock is taken in the transaction that creates it.
func (stockProvider) Order(context.Context, OrderRequest) (OrderStatus, error) {
	return OrderStatus{Active: true}, nil
}

// Release does nothing: a number without an owner is in stock again.
func (stockProvider) Release(context.Context, OrderRequest) error { return nil }

// stockTrunk returns the trunk of a number of the stock, or db.ErrNone.
func stockTrunk(ctx context.Context, q db.Querier, org, e164 string) (trunk string, err error) {
	const text = `SELECT trunk_id FROM number_stock WHERE org_id = $1 AND number = $2`
	err = q.QueryRow(ctx, text, org, e164).Scan(&trunk)
	return trunk, err
}

// maxBlock is the maximum number of numbers in one block.
const maxBlock = 10_000

// AddStock adds the numbers from first to last, which come over a trunk, to the stock. It returns how many are new.
// Both numbers must have the same length in E.164.
func (s *Service) AddStock(ctx context.Context, orgID, trunk, first, last string) (added int, err error) {
	o, err := s.orgs.Get(ctx, orgID)
	if err != nil {
		return 0, fmt.Errorf("find organisation: %w", err)
	}
	block, wrong := blockOf("numbers", first, last, o.Country)
	if wrong != nil {
		return 0, op.Invalid(*wrong)
	}
	const text = `INSERT INTO number_stock (org_id, number, country, locality, type, trunk_id, added_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (org_id, number) DO NOTHING`
	err = s.db.Tx(ctx, func(tx db.Querier) error {
		for _, e164 := range block {
			is := infoOf(e164, o.Country)
			r, err := tx.Exec(ctx, text, o.ID, e164, is.Country, is.Locality, is.Type, trunk, db.At(s.now()))
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if added += int(n); err != nil {
				return err
			}
		}
		return nil
	})
	if db.IsForeignKey(err) {
		return 0, op.Invalid(op.Field("trunk_id", "not_found", "the organisation has no such trunk"))
	}
	return added, err
}

// blockOf lists the numbers of a block, or returns its violation. field is the name of the block in the request.
func blockOf(field, first, last, country string) ([]string, *op.Violation) {
	from, ok := Parse(first, country)
	to, also := Parse(last, country)
	if !ok || !also || len(from) != len(to) {
		wrong := op.Field(field, "invalid_e164", "must be the first and the last number of a block, equally long")
		return nil, &wrong
	}
	a, _ := strconv.ParseInt(from[1:], 10, 64) // at most 15 digits
	b, _ := strconv.ParseInt(to[1:], 10, 64)
	if b < a || b-a >= maxBlock {
		wrong := op.Field(field, "out_of_range", fmt.Sprintf("the last number must follow the first, and a block has at most %d", maxBlock))
		return nil, &wrong
	}
	all := make([]string, 0, b-a+1)
	for n := a; n <= b; n++ {
		all = append(all, fmt.Sprintf("+%d", n))
	}
	return all, nil
}
