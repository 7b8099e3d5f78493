package number

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nyaruka/phonenumbers"

	"soniq/internal/platform/db"
)

// Available is a number that can be ordered.
type Available struct {
	Number        string   `json:"number" example:"+442079460018"`
	Country       string   `json:"country"`
	Region        *string  `json:"region"`
	Locality      *string  `json:"locality"`
	Type          string   `json:"type" enum:"local,mobile,national,toll_free,short_code"`
	Capabilities  []string `json:"capabilities" nullable:"false"`
	Provider      string   `json:"provider"`
	MonthlyCost   *Cost    `json:"monthly_cost"`
	SetupCost     *Cost    `json:"setup_cost"`
	ReservedUntil db.Time  `json:"reserved_until" nullable:"true"`
}

// fillDefaults derives from the number what the provider did not return.
func (a *Available) fillDefaults(provider, country string) {
	a.Provider = provider
	is := infoOf(a.Number, country)
	if a.Country == "" {
		a.Country = is.Country
	}
	if a.Type == "" {
		a.Type = is.Type
	}
	if a.Locality == nil {
		a.Locality = is.Locality
	}
	if a.Capabilities == nil {
		a.Capabilities = []string{}
	}
}

// SearchCriteria describes the numbers to search for. Empty members match every number.
type SearchCriteria struct {
	Org          string
	Country      string // ISO 3166
	AreaCode     string // digits after the country code
	Prefix       string // digits after the country code, including the area code
	Contains     string // digits anywhere
	Locality     string
	Types        []string
	Capabilities []string
	Limit        int
}

// CountryCode returns the calling code of the country without the plus sign.
func (w SearchCriteria) CountryCode() string {
	return fmt.Sprint(phonenumbers.GetCountryCodeForRegion(w.Country))
}

// DigitPrefix returns the first digits after the country code. ok is false if area code and prefix contradict each
// other.
func (w SearchCriteria) DigitPrefix() (digits string, ok bool) {
	long, short := w.Prefix, w.AreaCode
	if len(long) < len(short) {
		long, short = short, long
	}
	return long, strings.HasPrefix(long, short)
}

// Matches reports whether a number has the digits of the criteria.
func (w SearchCriteria) Matches(e164 string) bool {
	begin, ok := w.DigitPrefix()
	return ok && strings.HasPrefix(e164, "+"+w.CountryCode()+begin) && strings.Contains(e164, w.Contains)
}

// OrderRequest identifies a number to order from a provider.
type OrderRequest struct {
	Org, Number string
	Ref         string // idempotency key: the same for repetitions of an order, and unique otherwise
}

// OrderStatus is the state of an order.
type OrderStatus struct {
	Active       bool
	After        time.Duration // if not active: delay before the next request
	Detail       string        // reason of the delay, if the provider returns one
	MonthlyCost  *Cost
	Capabilities []string // empty if unknown
}

// Errors of providers. After any other error the request is repeated.
var (
	// ErrUnavailable reports that a number cannot be ordered, or not any more.
	ErrUnavailable = errors.New("the number is not available")
	// ErrAuth reports that the provider does not accept the credentials.
	ErrAuth = errors.New("the provider refuses the credentials")
	// ErrBusy reports that the provider's rate limit is reached.
	ErrBusy = errors.New("the provider is asked too often")
)

// ProviderAPI orders and releases numbers at a provider. Methods respect the deadline of their context.
type ProviderAPI interface {
	// Search returns numbers that can be ordered, at most the limit of the criteria.
	Search(ctx context.Context, w SearchCriteria) ([]Available, error)
	// Order orders a number, or returns the state of its order. It is idempotent by OrderRequest.Ref. It returns
	// ErrUnavailable if the number cannot be ordered.
	Order(ctx context.Context, d OrderRequest) (OrderStatus, error)
	// Release releases a number, or cancels its order. If the number is released already, it returns nil.
	Release(ctx context.Context, d OrderRequest) error
}

// InstantProvider is a provider that answers without network access, so that it can be called inside a transaction.
// Its numbers need no release.
type InstantProvider interface {
	ProviderAPI
	OrderNow(d OrderRequest) (OrderStatus, error)
}

// ProviderType is a kind of provider at which organisations can have an account.
type ProviderType struct {
	URL string // of its API, unless the account has another one
	Opener
}

// Opener returns the client of an account.
type Opener interface {
	Open(c Credentials) ProviderAPI
}

// Credentials hold the access to an account. They are stored sealed.
type Credentials struct {
	URL        string `json:"url"`
	Key        string `json:"key"`
	Connection string `json:"connection,omitempty"` // the provider's id of the connection over which it sends calls to this server
}

// ProviderSandbox is the provider of fictional numbers, in sandboxes only. ProviderOwn is the provider of numbers
// that the organisation owns already.
const (
	ProviderSandbox = "sandbox"
	ProviderOwn     = "own"
)
