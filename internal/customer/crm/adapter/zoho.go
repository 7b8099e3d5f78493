package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/op"
)

// ZohoSettings configure Zoho CRM.
type ZohoSettings struct {
	App
	Region string `json:"region,omitempty" enum:"com,eu,in,com.au,jp,ca,sa,com.cn" doc:"Where the account is; com unless given. Zoho leads people to the right one by itself"`
}

// zohoAccounts are the authorization servers by region.
var zohoAccounts = map[string]string{"com": "https://accounts.zoho.com", "eu": "https://accounts.zoho.eu", "in": "https://accounts.zoho.in",
	"com.au": "https://accounts.zoho.com.au", "jp": "https://accounts.zoho.jp", "ca": "https://accounts.zohocloud.ca",
	"sa":     "https://accounts.zoho.sa",
	"com.cn": "https://accounts.zoho.com.cn"}

// zohoScopes are the scopes that an app needs. Zoho requires commas between them.
const zohoScopes = "ZohoCRM.modules.ALL,ZohoSearch.securesearch.READ"

func (s ZohoSettings) vendorConnection() (VendorConnection, []op.Violation) {
	home, known := zohoAccounts[firstNonEmpty(s.Region, "com")]
	opened := func(at string) oauthEndpoints {
		return oauthEndpoints{authorize: at + "/oauth/v2/auth", token: at + "/oauth/v2/token", revoke: at + "/oauth/v2/token/revoke",
			scopes: []string{zohoScopes}, style: oauth2.AuthStyleInParams, authParams: []oauth2.AuthCodeOption{oauth2.AccessTypeOffline,
				oauth2.SetAuthURLParam("prompt", "consent")}}
	}
	d := VendorConnection{app: s.App, base: "https://www.zohoapis.com", scheme: "Zoho-oauthtoken",
		endpoints: opened(firstNonEmpty(s.LoginURL, home)), rateLimits: []rateLimit{{time.Second / 10, 5, ""}},
		// the redirect names the server of the account's region: it must be one of Zoho's
		tokenServer: func(q url.Values) string {
			at := strings.TrimRight(q.Get("accounts-server"), "/")
			if s.LoginURL == "" && slices.Contains(slices.Collect(maps.Values(zohoAccounts)), at) {
				return at
			}
			return ""
		},
		onToken: func(g *Grant, t *oauth2.Token, _ url.Values) error {
			base, _ := t.Extra("api_domain").(string)
			g.Base = firstNonEmpty(base, g.Base)
			return nil
		},
		classifyError: zohoError, newAdapter: func(a *vendorClient) Adapter { return &zoho{a} }}
	d.endpointsFor = func(g Grant) oauthEndpoints { return opened(firstNonEmpty(g.Login, s.LoginURL, home)) }
	if !known {
		return d, []op.Violation{op.Field("settings.region", "invalid_value",
			"must be one of "+strings.Join(slices.Sorted(maps.Keys(zohoAccounts)), ", "))}
	}
	return d, nil
}

// zohoError maps rate limit errors. Zoho returns no time to wait.
func zohoError(status int, h http.Header, _ []byte) error {
	if status != http.StatusTooManyRequests || h.Get("Retry-After") != "" {
		return nil
	}
	return &BusyError{After: time.Minute}
}

// zoho is the adapter for Zoho CRM's API v8. The external id of a record is its module and its id: Contacts/123.
type zoho struct{ *vendorClient }

// Can reports the capabilities that all vendors have.
func (z *zoho) Can() Capabilities { return vendorCapabilities }

type zohoRecord struct {
	ID       string      `json:"id"`
	Name     string      `json:"Full_Name"`
	First    string      `json:"First_Name"`
	Last     string      `json:"Last_Name"`
	Title    string      `json:"Title"`
	Job      string      `json:"Designation"`
	Company  zohoCompany `json:"Company"`
	Account  zohoCompany `json:"Account_Name"`
	Email    string      `json:"Email"`
	Phone    string      `json:"Phone"`
	Mobile   string      `json:"Mobile"`
	Modified *time.Time  `json:"Modified_Time"`
}

// zohoCompany is the name of a company: a contact has an account object, a lead a string.
type zohoCompany string

// UnmarshalJSON decodes an object with a name, a string, or null.
func (f *zohoCompany) UnmarshalJSON(b []byte) error {
	var x struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(b, &x) == nil {
		*f = zohoCompany(x.Name)
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	*f = zohoCompany(text)
	return nil
}

// zohoCriterion returns one condition of a search, with brackets, commas and backslashes escaped.
func zohoCriterion(field, is, text string) string {
	return "(" + field + ":" + is + ":" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`, ",", `\,`).Replace(text) + ")"
}

// Lookup searches contacts, then leads. A search may have ten conditions, which suffice for five spellings of a
// number in two fields.
func (z *zoho) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	var all []string
	for _, way := range slices.Compact([]string{q.Phone.E164, q.Phone.International, q.Phone.National, q.Phone.Plain, q.Phone.Digits}) {
		all = append(all, zohoCriterion("Phone", "equals", way), zohoCriterion("Mobile", "equals", way))
	}
	ask := url.Values{"criteria": {"(" + strings.Join(all, "or") + ")"}, "per_page": {"20"}}
	if q.Email != "" {
		ask = url.Values{"email": {q.Email}, "per_page": {"20"}}
	}
	for _, module := range []string{"Contacts", "Leads"} {
		found, err := z.search(ctx, module, ask)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func (z *zoho) search(ctx context.Context, module string, q url.Values) ([]contact.Record, error) {
	var x struct {
		Data []zohoRecord `json:"data"`
	}
	if err := z.do(ctx, apiRequest{method: http.MethodGet, path: "/crm/v8/" + module + "/search", query: q, search: true}, &x); err != nil {
		return nil, err
	}
	return mapSlice(x.Data, func(o zohoRecord) contact.Record {
		r := contact.Record{ExternalID: module + "/" + o.ID, Name: firstNonEmpty(o.Name, strings.TrimSpace(o.First+" "+o.Last)),
			Title:   firstNonEmpty(o.Title, o.Job),
			Company: firstNonEmpty(string(o.Account), string(o.Company)), Email: o.Email, URL: z.recordURL(ctx, module+"/"+o.ID)}
		for _, p := range []string{o.Phone, o.Mobile} {
			if p != "" {
				r.Phones = append(r.Phones, p)
			}
		}
		if o.Modified != nil {
			r.UpdatedAt = *o.Modified
		}
		return r
	}), nil
}

// recordURL returns the web address of a record, on the host that belongs to the API's.
func (z *zoho) recordURL(ctx context.Context, id string) string {
	k, err := z.credentialSource.Credentials(ctx, "")
	if err != nil {
		return ""
	}
	return strings.Replace(k.base, "//www.zohoapis.", "//crm.zoho.", 1) + "/crm/tab/" + id
}

// parseZohoID splits the external id of a record.
func parseZohoID(id string) (module, number string, err error) {
	module, number, ok := strings.Cut(id, "/")
	if !ok || module != "Contacts" && module != "Leads" || number == "" || strings.Trim(number, "0123456789") != "" {
		return "", "", fmt.Errorf("%w: %q is no record", ErrRefused, id)
	}
	return module, number, nil
}

// put writes one record of a module. If id is "", it creates one. Zoho reports success per record, whatever the HTTP
// status.
func (z *zoho) put(ctx context.Context, module, id string, fields map[string]any, more map[string]any) (string, error) {
	w := apiRequest{method: http.MethodPost, path: "/crm/v8/" + module}
	if id != "" {
		w.method, w.path = http.MethodPut, w.path+"/"+url.PathEscape(id)
	} else if more != nil {
		w.path += "/upsert"
	}
	body := map[string]any{"data": []any{fields}}
	maps.Copy(body, more)
	w.body = body
	var x struct {
		Data []struct {
			Code    string `json:"code"`
			Status  string `json:"status"`
			Message string `json:"message"`
			Details struct {
				ID string `json:"id"`
			} `json:"details"`
		} `json:"data"`
	}
	if err := z.do(ctx, w, &x); err != nil {
		return "", refusedIfMissing(err)
	}
	if len(x.Data) != 1 || x.Data[0].Status != "success" {
		why := "it does not say"
		if len(x.Data) > 0 {
			why = x.Data[0].Code + ": " + clip(x.Data[0].Message)
		}
		return "", fmt.Errorf("%w: %s", ErrRefused, why)
	}
	return firstNonEmpty(x.Data[0].Details.ID, id), nil
}

// Upsert writes a contact, or the lead if the record is a lead. Zoho itself recognises an existing contact by the
// e-mail address.
func (z *zoho) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (WriteResult, error) {
	if externalID == "" {
		id, err := z.findExisting(ctx, z, c)
		if err != nil {
			return WriteResult{}, err
		}
		externalID = id
	}
	p, fields := contactFieldsOf(c), map[string]any{}
	for name, text := range map[string]string{"First_Name": p.first, "Last_Name": p.last, "Email": p.email, "Phone": p.phone,
		"Mobile": p.mobile} {
		setNonEmpty(fields, name, text)
	}
	module, number, more := "Contacts", "", map[string]any(nil)
	if externalID != "" {
		var err error
		if module, number, err = parseZohoID(externalID); err != nil {
			return WriteResult{}, err
		}
	} else if p.email != "" {
		more = map[string]any{"duplicate_check_fields": []string{"Email"}}
	}
	if setNonEmpty(fields, "Title", p.title); module == "Leads" {
		delete(fields, "Title")
		setNonEmpty(fields, "Designation", p.title)
		setNonEmpty(fields, "Company", p.company)
	}
	id, err := z.put(ctx, module, number, fields, more)
	if err != nil {
		return WriteResult{}, err
	}
	return WriteResult{ExternalID: module + "/" + id, URL: z.recordURL(ctx, module+"/"+id)}, nil
}

// NeedsRecord is true: a note belongs to a record.
func (z *zoho) NeedsRecord() bool { return true }

// LogNeedsRecord is true: a call without a record cannot be found in Zoho.
func (z *zoho) LogNeedsRecord() bool { return true }

// Note writes a note on a record. Its title contains our id, by which a retry finds it.
func (z *zoho) Note(ctx context.Context, _ string, n Note) (WriteResult, error) {
	module, number, err := parseZohoID(n.ExternalID)
	if err != nil {
		return WriteResult{}, err
	}
	title := "Note " + n.ID
	if n.Again {
		if id, err := z.findWritten(ctx, module+"/"+number+"/Notes", "Note_Title", title); err != nil || id != "" {
			return WriteResult{ExternalID: id}, err
		}
	}
	id, err := z.put(ctx, "Notes", "", map[string]any{"Note_Title": title, "Note_Content": truncate(n.withAuthor(), 32000),
		"Parent_Id": map[string]any{"id": number, "module": map[string]string{"api_name": module}}}, nil)
	return WriteResult{ExternalID: id}, err
}

// findWritten returns the id of the item of an earlier attempt with a lost answer: an item of the record
// with our mark in a field; "" if there is none.
func (z *zoho) findWritten(ctx context.Context, list, field, mark string) (string, error) {
	var x struct {
		Data []map[string]any `json:"data"`
	}
	q := url.Values{"fields": {"id," + field}, "per_page": {"50"}, "sort_by": {"Created_Time"}, "sort_order": {"desc"}}
	if err := z.do(ctx, apiRequest{method: http.MethodGet, path: "/crm/v8/" + list, query: q}, &x); err != nil {
		return "", err
	}
	for _, o := range x.Data {
		if text, _ := o[field].(string); strings.Contains(text, mark) {
			id, _ := o["id"].(string)
			return id, nil
		}
	}
	return "", nil
}

// LogCall writes a call, or changes it. Its description ends with our id, by which a retry finds it.
func (z *zoho) LogCall(ctx context.Context, _ string, c CallLog) (WriteResult, error) {
	if c.RecordID != "" {
		id, err := z.put(ctx, "Calls", c.RecordID, z.callFields(c), nil)
		return WriteResult{ExternalID: id}, err
	}
	module, number, err := parseZohoID(c.ExternalID)
	if err != nil {
		return WriteResult{}, err
	}
	if c.Again {
		if id, err := z.findWritten(ctx, module+"/"+number+"/Calls", "Description", c.ID); err != nil || id != "" {
			return WriteResult{ExternalID: id}, err
		}
	}
	fields := z.callFields(c)
	fields["Call_Start_Time"] = c.StartedAt.UTC().Format(time.RFC3339)
	if module == "Contacts" {
		fields["Who_Id"] = map[string]string{"id": number}
	} else {
		fields["What_Id"], fields["$se_module"] = map[string]string{"id": number}, module
	}
	id, err := z.put(ctx, "Calls", "", fields, nil)
	return WriteResult{ExternalID: id}, err
}

func (z *zoho) callFields(c CallLog) map[string]any {
	kind := "Outbound"
	switch {
	case c.Direction == "inbound" && c.Talk == 0:
		kind = "Missed"
	case c.Direction == "inbound":
		kind = "Inbound"
	}
	fields := map[string]any{"Subject": truncate(c.title(), 250), "Call_Type": kind, "Call_Duration": fmt.Sprintf("%02d:%02d", c.Talk/60,
		c.Talk%60), "Description": truncate(c.text(64<<10), 31900) + "\n" + c.ID}
	if kind == "Outbound" {
		fields["Outgoing_Call_Status"] = "Completed"
	}
	return fields
}
