// Package crm connects external systems that hold an organisation's contacts: CRMs, address books, LDAP directories,
// CSV files. It looks up callers in them, copies lists into the phone index, and writes contacts, notes and calls.
package crm

import (
	"encoding/json"
	"time"

	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Connection is an external system that an organisation has connected.
type Connection struct {
	ID           string               `json:"id" example:"crm_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Provider     string               `json:"provider" enum:"internal,hubspot,salesforce,pipedrive,zoho,dynamics,zendesk,freshsales,odoo,espocrm,suitecrm,tryton,carddav,ldap,csv,http"`
	Name         string               `json:"name"`
	Status       string               `json:"status" enum:"active,degraded,auth_required,disabled"`
	Priority     int                  `json:"priority" doc:"The lowest wins where several systems know a number"`
	Capabilities adapter.Capabilities `json:"capabilities"`
	Settings     map[string]any       `json:"settings" doc:"Secrets are shown as asterisks"`
	FieldMap     map[string]string    `json:"field_map" doc:"Our fields, and where they stand in the system's records"`
	TimeoutMS    int                  `json:"timeout_ms" doc:"How long one question may take; what is late is kept for the next who asks"`
	LookupP95MS  *int                 `json:"lookup_p95_ms" doc:"Of the last 100 questions"`
	ErrorRate    *int                 `json:"error_rate" doc:"Percent of the last 100 questions"`
	LastError    *string              `json:"last_error"`
	Entries      int                  `json:"entries" doc:"People copied into the phone index"`
	RefreshedAt  db.Time              `json:"refreshed_at" nullable:"true"`
	NoticeURL    *string              `json:"notice_url" secret:"true" doc:"Of lists: a POST to it says that the list has changed; it is read within seconds. Secret"`
	CreatedAt    db.Time              `json:"created_at" nullable:"true" doc:"null: it was always there"`

	AuthorizeURL string `json:"authorize_url,omitempty" secret:"true" doc:"Where somebody agrees in a browser, within ten minutes; only in the answer that made the connection"`

	holder       access.Holder // who made its settings
	grantState   string        // "": no consent yet, "yes", or the reason why the vendor refuses the grant
	org          string
	enabled      bool
	settings     json.RawMessage // with secrets
	syncToken    string          // position of the next incremental read
	refreshError string          // error of the last refresh
	updatedAt    db.Time
}

// Limits and defaults of connections.
const (
	maxConnections  = 20
	defaultTimeout  = 2000 // ms
	defaultPriority = 100
)

func (c Connection) timeout() time.Duration { return time.Duration(c.TimeoutMS) * time.Millisecond }

// Changed is the bus subject for changes of connections. The message is the id of the organisation.
const Changed = "changed.connections"
