package number

import (
	"context"
	"errors"
	"time"

	"soniq/db"
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

// Order is how far an order is.
type Order struct {
	Active      bool
	After       time.Duration // while it is not active: when to ask again
	MonthlyCost *Cost
}

// ErrUnavailable says that a number cannot be had any more.
var ErrUnavailable = errors.New("the number is not available")

// A Market sells numbers. Methods keep to the deadline of their context.
type Market interface {
	// Search returns numbers that can be ordered, up to the limit of the wish.
	Search(ctx context.Context, w Wish) ([]Available, error)
	// Order orders a number, or says how far its order is: asking twice orders once. ErrUnavailable where it cannot be had.
	Order(ctx context.Context, org, e164 string) (Order, error)
	// Release gives a number back.
	Release(ctx context.Context, org, e164 string) error
}

// An Instant market answers an order without asking anybody, so that it can be made within a transaction.
type Instant interface {
	Market
	OrderNow(org, e164 string) (Order, error)
}

// Sandbox is the provider of numbers that are made up, in sandboxes only; Own that of numbers that were brought along.
const (
	Sandbox = "sandbox"
	Own     = "own"
)
