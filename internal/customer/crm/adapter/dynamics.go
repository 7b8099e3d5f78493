package adapter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/op"
)

// DynamicsSettings configure Dynamics 365.
type DynamicsSettings struct {
	App
	Resource          string `json:"resource" doc:"Of the environment: https://acme.crm4.dynamics.com"`
	Tenant            string `json:"tenant,omitempty" doc:"Of Entra ID, an id or a domain; organizations unless given"`
	ClientCredentials bool   `json:"client_credentials,omitempty" doc:"The app of your own acts for itself, as an application user, and nobody has to agree; needs tenant"`
	RefreshMinutes    int    `json:"refresh_minutes,omitempty" doc:"How often all contacts are copied into the phone index, and what has changed later; 60 unless given; 5 to 10080"`
}

const dynamicsAPI = "/api/data/v9.2"

func (s DynamicsSettings) vendorConnection() (VendorConnection, []op.Violation) {
	resource := strings.TrimRight(s.Resource, "/")
	at := firstNonEmpty(s.LoginURL, "https://login.microsoftonline.com") + "/" + url.PathEscape(firstNonEmpty(s.Tenant, "organizations")) +
		"/oauth2/v2.0"
	d := VendorConnection{app: s.App, clientCredentials: s.ClientCredentials, base: resource,
		rateLimits: []rateLimit{{time.Second / 15, 50, ""}},
		endpoints: oauthEndpoints{authorize: at + "/authorize", token: at + "/token", scopes: []string{resource + "/user_impersonation",
			"offline_access"}, style: oauth2.AuthStyleInParams, pkce: true},
		newAdapter: func(a *vendorClient) Adapter {
			return &dynamics{vendorClient: a, resource: resource, refreshMinutes: s.RefreshMinutes}
		}}
	if s.ClientCredentials {
		d.endpoints.scopes = []string{resource + "/.default"}
	}
	var wrong []op.Violation
	host, secure := strings.CutPrefix(strings.ToLower(resource), "https://")
	if !secure || !isHostName(host) || !strings.HasSuffix(host, ".dynamics.com") {
		wrong = append(wrong, op.Field("settings.resource", "invalid_url", "must be an address such as https://acme.crm4.dynamics.com"))
	}
	if s.Tenant != "" && !isHostName(s.Tenant) || s.ClientCredentials && s.Tenant == "" {
		wrong = append(wrong, op.Field("settings.tenant", "invalid_value", "must be the id or a domain of the tenant"))
	}
	if s.RefreshMinutes != 0 && (s.RefreshMinutes < 5 || s.RefreshMinutes > 10080) {
		wrong = append(wrong, op.Field("settings.refresh_minutes", "invalid_value", "must be between 5 and 10080"))
	}
	return d, wrong
}

// dynamics is the adapter for the Web API of Dynamics 365. It stores phone numbers only as a person typed them. All
// contacts are therefore copied into the phone index; numbers in one of the usual spellings are also found by a
// lookup.
type dynamics struct {
	*vendorClient
	resource       string
	refreshMinutes int
}

// Can reports the capabilities that all vendors have.
func (d *dynamics) Can() Capabilities { return vendorCapabilities }

type dynamicsContact struct {
	ID       string    `json:"contactid"`
	Name     string    `json:"fullname"`
	Title    string    `json:"jobtitle"`
	Email    string    `json:"emailaddress1"`
	Phone    string    `json:"telephone1"`
	Home     string    `json:"telephone2"`
	Mobile   string    `json:"mobilephone"`
	Modified time.Time `json:"modifiedon"`
	Company  string    `json:"_parentcustomerid_value@OData.Community.Display.V1.FormattedValue"`

	// of a deleted contact
	Context   string `json:"@odata.context"`
	DeletedID string `json:"id"`
}

type dynamicsPage struct {
	Value []dynamicsContact `json:"value"`
	Next  string            `json:"@odata.nextLink"`
	Delta string            `json:"@odata.deltaLink"`
}

var dynamicsPhones = []string{"telephone1", "telephone2", "mobilephone"}

const (
	dynamicsFields = "contactid,fullname,jobtitle,emailaddress1,telephone1,telephone2,mobilephone,modifiedon,_parentcustomerid_value"
	// dynamicsPrefer requests the name of the company in addition to its id.
	dynamicsPrefer = `odata.include-annotations="OData.Community.Display.V1.FormattedValue"`
)

// odataQuote writes a text as a literal of a filter.
func odataQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Lookup searches for contacts whose number has one of the usual spellings, or that have an e-mail address.
func (d *dynamics) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	var any []string
	for _, way := range phoneSpellings(q.Phone) {
		for _, field := range dynamicsPhones {
			any = append(any, field+" eq "+odataQuote(way))
		}
	}
	if q.Email != "" {
		any = []string{"emailaddress1 eq " + odataQuote(q.Email)}
	}
	var page dynamicsPage
	err := d.do(ctx, apiRequest{method: http.MethodGet, path: dynamicsAPI + "/contacts", search: true,
		query: url.Values{"$select": {dynamicsFields},
			"$filter": {strings.Join(any, " or ")}, "$top": {"20"}}, header: map[string]string{"Prefer": dynamicsPrefer}}, &page)
	return mapSlice(page.Value, d.record), err
}

func (d *dynamics) record(x dynamicsContact) contact.Record {
	r := contact.Record{ExternalID: x.ID, Name: x.Name, Company: x.Company, Title: x.Title, Email: x.Email, UpdatedAt: x.Modified,
		URL: d.recordURL(x.ID)}
	for _, p := range []string{x.Phone, x.Mobile, x.Home} {
		if p != "" && !slices.Contains(r.Phones, p) {
			r.Phones = append(r.Phones, p)
		}
	}
	return r
}

func (d *dynamics) recordURL(id string) string {
	return d.resource + "/main.aspx?pagetype=entityrecord&etn=contact&id=" + url.QueryEscape(id)
}

// deterministicGUID derives an id from a key, so that a repeated write creates no second row.
func deterministicGUID(key string) string {
	b := sha256.Sum256([]byte(key))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // RFC 9562 §5.8
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

var guidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// upsertRow writes a row. PATCH creates a missing row, unless there is true.
func (d *dynamics) upsertRow(ctx context.Context, table, id string, there bool, fields map[string]any) (WriteResult, error) {
	if !guidPattern.MatchString(id) {
		return WriteResult{}, fmt.Errorf("%w: %q is no row", ErrRefused, id)
	}
	w := apiRequest{method: http.MethodPatch, path: dynamicsAPI + "/" + table + "(" + id + ")", body: fields}
	if there {
		w.header = map[string]string{"If-Match": "*"}
	}
	return WriteResult{ExternalID: id}, refusedIfMissing(d.do(ctx, w, nil))
}

// Upsert writes a contact. A new one gets an id derived from ours.
func (d *dynamics) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (WriteResult, error) {
	there := externalID != ""
	if !there {
		id, err := d.findExisting(ctx, d, c)
		if err != nil {
			return WriteResult{}, err
		}
		there, externalID = id != "", firstNonEmpty(id, deterministicGUID(d.org+c.ID))
	}
	p, fields := contactFieldsOf(c), map[string]any{}
	for name, text := range map[string]string{"firstname": p.first, "lastname": p.last, "jobtitle": p.title, "emailaddress1": p.email,
		"telephone1": p.phone, "mobilephone": p.mobile} {
		setNonEmpty(fields, name, text)
	}
	out, err := d.upsertRow(ctx, "contacts", externalID, there, fields)
	out.URL = d.recordURL(out.ExternalID)
	return out, err
}

// NeedsRecord is true: an annotation belongs to a contact.
func (d *dynamics) NeedsRecord() bool { return true }

// LogNeedsRecord is true for the same reason.
func (d *dynamics) LogNeedsRecord() bool { return true }

// Note writes an annotation.
func (d *dynamics) Note(ctx context.Context, _ string, n Note) (WriteResult, error) {
	if !guidPattern.MatchString(n.ExternalID) {
		return WriteResult{}, fmt.Errorf("%w: %q is no contact", ErrRefused, n.ExternalID)
	}
	return d.upsertRow(ctx, "annotations", deterministicGUID(d.org+n.ID), false,
		map[string]any{"subject": "Note", "notetext": truncate(n.withAuthor(), 100_000),
			"objectid_contact@odata.bind": "/contacts(" + n.ExternalID + ")"})
}

// Status codes of a completed phone call.
const (
	dynamicsStatusMade     = 2 // statuscode: made
	dynamicsStatusReceived = 4
)

// LogCall writes a phone call and closes it. A closed one is reopened for the change.
func (d *dynamics) LogCall(ctx context.Context, _ string, c CallLog) (WriteResult, error) {
	id, fields := firstNonEmpty(c.RecordID, deterministicGUID(d.org+c.ID)), map[string]any{"subject": truncate(c.title(), 200),
		"description": truncate(c.text(100_000), 2000), "actualdurationminutes": (c.Talk + 59) / 60}
	if c.RecordID == "" {
		if !guidPattern.MatchString(c.ExternalID) {
			return WriteResult{}, fmt.Errorf("%w: %q is no contact", ErrRefused, c.ExternalID)
		}
		fields["directioncode"], fields["actualstart"] = c.Direction != "inbound", c.StartedAt.UTC().Format(time.RFC3339)
		setNonEmpty(fields, "phonenumber", c.Phone)
		fields["regardingobjectid_contact@odata.bind"] = "/contacts(" + c.ExternalID + ")"
		mask := 2 // to
		if c.Direction == "inbound" {
			mask = 1 // from
		}
		fields["phonecall_activity_parties"] = []map[string]any{{"partyid_contact@odata.bind": "/contacts(" + c.ExternalID + ")",
			"participationtypemask": mask}}
	}
	if c.RecordID != "" || c.Again {
		if out, err := d.upsertRow(ctx, "phonecalls", id, true, map[string]any{"statecode": 0, "statuscode": 1}); err != nil &&
			c.RecordID != "" {
			return out, err
		}
	}
	out, err := d.upsertRow(ctx, "phonecalls", id, c.RecordID != "", fields)
	if err != nil {
		return out, err
	}
	status := dynamicsStatusMade
	if c.Direction == "inbound" {
		status = dynamicsStatusReceived
	}
	return d.upsertRow(ctx, "phonecalls", id, true, map[string]any{"statecode": 1, "statuscode": status})
}
