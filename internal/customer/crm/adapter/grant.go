package adapter

import (
	"time"
)

// Grant holds the tokens that a vendor issued for a connection, and the data that came with them.
type Grant struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	Base    string `json:"base,omitempty"`  // address of the API, if the vendor returns it
	Login   string `json:"login,omitempty"` // address of the token server from now on
	Account string `json:"account,omitempty"`

	Version int64     `json:"-"`
	Expires time.Time `json:"-"` // zero if the vendor returns no lifetime
	Refused string    `json:"-"`
}
