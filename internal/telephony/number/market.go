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

// An Available is a number that can be had.
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

// complete fills in what a market does not say, but the number does.
func (a *Available) complete(provider, country string) {
	a.Provider = provider
	is := factsOf(a.Number, country)
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

// A Wish is the number somebody looks for. Empty members do not matter.
type Wish struct {
	Org          string
	Country      string // ISO 3166
	AreaCode     string // digits after the country code
	Prefix       string // digits after the country code, the area code among them
	Contains     string // digits anywhere
	Locality     string
	Types        []string
	Capabilities []string
	Limit        int
}

// Code is the country code of the wish, without the plus sign.
func (w Wish) Code() string { return fmt.Sprint(phonenumbers.GetCountryCodeForRegion(w.Country)) }

// Begin is how a number begins after the country code; ok is false where area code and prefix exclude each other.
func (w Wish) Begin() (digits string, ok bool) {
	long, short := w.Prefix, w.AreaCode
	if len(long) < len(short) {
		long, short = short, long
	}
	return long, strings.HasPrefix(long, short)
}

// Fits reports whether the digits of a number are those that are wanted.
func (w Wish) Fits(e164 string) bool {
	begin, ok := w.Begin()
	return ok && strings.HasPrefix(e164, "+"+w.Code()+begin) && strings.Contains(e164, w.Contains)
}

// A Deal is a number that is bought from a market.
type Deal struct {
	Org, Number string
	Ref         string // the same whenever the same order is meant, and never for another
}

// Order is how far an order is.
type Order struct {
	Active       bool
	After        time.Duration // while it is not active: when to ask again
	Detail       string        // why it takes time, where the provider says so
	MonthlyCost  *Cost
	Capabilities []string // where they are known
}

// Errors of markets. Others are tried again.
var (
	// ErrUnavailable says that a number cannot be had (any more).
	ErrUnavailable = errors.New("the number is not available")
	// ErrAuth says that the provider does not accept the credentials.
	ErrAuth = errors.New("the provider refuses the credentials")
	// ErrBusy says that the provider wants to be left alone for a while.
	ErrBusy = errors.New("the provider is asked too often")
)

// A Market sells numbers. Methods keep to the deadline of their context.
type Market interface {
	// Search returns numbers that can be ordered, up to the limit of the wish.
	Search(ctx context.Context, w Wish) ([]Available, error)
	// Order orders a number, or says how far its order is: asking twice orders once. ErrUnavailable where it cannot be had.
	Order(ctx context.Context, d Deal) (Order, error)
	// Release gives a number back, or calls its order off. Giving back what is not there any more is no error.
	Release(ctx context.Context, d Deal) error
}

// An Instant market answers at once without asking anybody, so that it can be asked within a transaction. Giving back takes nothing.
type Instant interface {
	Market
	OrderNow(d Deal) (Order, error)
}

// A Seller is a kind of provider with which organisations can have an account.
type Seller struct {
	URL  string // of its API, unless the account names another
	Open func(Credentials) Market
}

// Credentials are what an account is used with.
type Credentials struct {
	URL        string `json:"url"`
	Key        string `json:"key"`
	Connection string `json:"connection,omitempty"` // the provider's name of the connection by which it sends us calls
}

// Sandbox is the provider of numbers that are made up, in sandboxes only; Own that of numbers that were brought along.
const (
	Sandbox = "sandbox"
	Own     = "own"
)
