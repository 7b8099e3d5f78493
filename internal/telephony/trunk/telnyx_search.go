package trunk

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/currency"

	"soniq/internal/telephony/number"
)

// telnyxNumber is an available number in the Telnyx API.
type telnyxNumber struct {
	Number  string `json:"phone_number"`
	Regions []struct {
		Type string `json:"region_type"`
		Name string `json:"region_name"`
	} `json:"region_information"`
	Cost struct {
		Upfront  string `json:"upfront_cost"`
		Monthly  string `json:"monthly_cost"`
		Currency string
	} `json:"cost_information"`
	Features []struct{ Name string }
}

// telnyxTypes are the number types of Telnyx; ours have the same names.
var telnyxTypes = []string{"local", "toll_free", "mobile", "national"}

// Search sends one request per number type, in parallel, because Telnyx accepts one type per request. The results are
// filtered again, because Telnyx does not match digits exactly.
func (t *Telnyx) Search(ctx context.Context, w number.SearchCriteria) ([]number.Available, error) {
	kinds := []string{""}
	if len(w.Types) > 0 {
		kinds = slices.DeleteFunc(slices.Clone(w.Types), func(k string) bool { return !slices.Contains(telnyxTypes, k) })
	}
	if _, ok := w.DigitPrefix(); !ok {
		return nil, nil
	}
	found, errs := make([][]number.Available, len(kinds)), make([]error, len(kinds))
	var all sync.WaitGroup
	for i, kind := range kinds {
		all.Go(func() { found[i], errs[i] = t.searchOffers(ctx, w, kind) })
	}
	all.Wait()
	fit := slices.DeleteFunc(slices.Concat(found...), func(a number.Available) bool { return !w.Matches(a.Number) })
	return fit[:min(len(fit), w.Limit)], errors.Join(errs...)
}

// searchOffers searches one type of number; "" is any.
func (t *Telnyx) searchOffers(ctx context.Context, w number.SearchCriteria, kind string) ([]number.Available, error) {
	q := telnyxQuery(w)
	if kind != "" {
		q.Set("filter[phone_number_type]", kind)
	}
	var page struct{ Data []telnyxNumber }
	err := t.request(ctx, http.MethodGet, "/available_phone_numbers", q, nil, &page)
	var no *telnyxRefusal
	if errors.As(err, &no) {
		return nil, nil // Telnyx refuses a search in a country without coverage
	}
	all := make([]number.Available, len(page.Data))
	for i, n := range page.Data {
		all[i] = n.available(kind)
	}
	return all, err
}

// telnyxQuery returns the search as Telnyx filters. With an area code, the patterns apply to the digits after it.
func telnyxQuery(w number.SearchCriteria) url.Values {
	q := url.Values{"filter[country_code]": {w.Country}, "filter[limit]": {strconv.Itoa(w.Limit)}, "filter[best_effort]": {"false"},
		"filter[exclude_held_numbers]": {"true"}}
	begin, _ := w.DigitPrefix()
	area := w.AreaCode
	if area == "" && w.CountryCode() == "1" && len(begin) >= 3 {
		area = begin[:3]
	}
	set := func(name, v string) {
		if v != "" {
			q.Set("filter["+name+"]", v)
		}
	}
	set("national_destination_code", area)
	set("phone_number][starts_with", strings.TrimPrefix(begin, area))
	if !strings.Contains("+"+w.CountryCode()+begin, w.Contains) {
		set("phone_number][contains", w.Contains)
	}
	set("locality", w.Locality)
	for _, c := range w.Capabilities {
		q.Add("filter[features][]", c)
	}
	return q
}

func (n telnyxNumber) available(kind string) number.Available {
	a := number.Available{Number: n.Number, Type: kind, Capabilities: []string{}, MonthlyCost: minorUnits(n.Cost.Monthly, n.Cost.Currency),
		SetupCost: minorUnits(n.Cost.Upfront, n.Cost.Currency)}
	for _, r := range n.Regions {
		switch name := r.Name; {
		case r.Type == "country_code":
			a.Country = strings.ToUpper(name)
		case r.Type == "state":
			a.Region = &name
		case r.Type == "location", r.Type == "rate_center" && a.Locality == nil:
			a.Locality = &name
		}
	}
	for _, f := range n.Features {
		if slices.Contains([]string{"voice", "sms", "mms", "fax"}, f.Name) {
			a.Capabilities = append(a.Capabilities, f.Name)
		}
	}
	return a
}

// lookupOffer searches a number before it is ordered, because Telnyx accepts orders only for numbers that a search
// has returned. If it is not found, the order fails with the reason.
func (t *Telnyx) lookupOffer(ctx context.Context, d number.OrderRequest) (a number.Available) {
	n, err := phonenumbers.Parse(d.Number, "")
	if err != nil {
		return a
	}
	w := number.SearchCriteria{Country: phonenumbers.GetRegionCodeForNumber(n), Limit: 10}
	if w.Country == "" {
		w.Country = phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
	}
	w.Prefix = phonenumbers.GetNationalSignificantNumber(n)
	found, err := t.searchOffers(ctx, w, "")
	if i := slices.IndexFunc(found, func(a number.Available) bool { return a.Number == d.Number }); err == nil && i >= 0 {
		return found[i]
	}
	return a
}

// minorUnits converts an amount such as "1.00000" to the smallest unit of its currency; nil if it is not an amount.
func minorUnits(amount, code string) *number.Cost {
	unit, err := currency.ParseISO(code)
	r, ok := new(big.Rat).SetString(amount)
	if err != nil || !ok || r.Sign() < 0 || len(amount) > 20 {
		return nil
	}
	scale, _ := currency.Standard.Rounding(unit)
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	whole := new(big.Int).Div(new(big.Int).Add(new(big.Int).Mul(r.Num(), big.NewInt(2)), r.Denom()),
		new(big.Int).Mul(r.Denom(), big.NewInt(2)))
	if !whole.IsInt64() {
		return nil
	}
	return &number.Cost{Amount: int(whole.Int64()), Currency: unit.String()}
}
