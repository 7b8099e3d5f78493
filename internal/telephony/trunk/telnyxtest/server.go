// Package telnyxtest is a fake of the Telnyx numbers API for tests, built from the published description. It
// validates requests as strictly as the description.
package telnyxtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Key is the only API key that it accepts.
const Key = "KEY0123456789ABCDEF_test"

// Order is a number order.
type Order struct {
	ID, Number, Status, Reference, Connection string
	RequirementsMet                           bool
}

// Server is the fake. Its fields may be read and set between Lock and Unlock.
type Server struct {
	*httptest.Server
	sync.Mutex
	Stock    []string // available numbers, in E.164
	Orders   []*Order
	Owned    map[string]string // numbers of the account, by id
	Requests []string          // method and address of every request
	// Fail answers a request instead of the server, if it returns true.
	Fail func(w http.ResponseWriter, r *http.Request) bool
	// Status is the status of new orders; success by default.
	Status string
	// RequireDocuments makes new orders wait for documents.
	RequireDocuments bool
	violations       []string
}

// New starts a fake with some available numbers. The test fails if a request uses something that the description does
// not have.
func New(t testing.TB) *Server {
	s := &Server{Stock: []string{"+12025550140", "+12025550141", "+13125550142", "+442079460150"}, Owned: map[string]string{},
		Status: "success"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/available_phone_numbers", s.available)
	mux.HandleFunc("GET /v2/number_orders", s.list)
	mux.HandleFunc("POST /v2/number_orders", s.order)
	mux.HandleFunc("GET /v2/phone_numbers", s.numbers)
	mux.HandleFunc("DELETE /v2/phone_numbers/{id}", s.remove)
	mux.HandleFunc("PATCH /v2/sub_number_orders/{id}/cancel", s.cancel)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, mux) }))
	t.Cleanup(func() {
		s.Close()
		for _, w := range s.violations {
			t.Error("the stand-in was asked for what Telnyx does not have:", w)
		}
	})
	return s
}

// API returns the base address of the API.
func (s *Server) API() string { return s.URL + "/v2" }

func (s *Server) serve(w http.ResponseWriter, r *http.Request, mux http.Handler) {
	s.Lock()
	defer s.Unlock()
	s.Requests = append(s.Requests, r.Method+" "+r.URL.RequestURI())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if s.Fail != nil && s.Fail(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+Key {
		WriteError(w, 401, "10009", "Authentication failed", "No key found matching the ID 'KEY…' with the provided secret.")
		return
	}
	mux.ServeHTTP(w, r)
}

// WriteError responds with an error in the format of Telnyx.
func WriteError(w http.ResponseWriter, status int, code, title, detail string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"code": code, "title": title, "detail": detail,
		"meta": map[string]string{"url": "https://developers.telnyx.com/docs/overview/errors/" + code}}}})
}

func (s *Server) recordViolation(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// filters are the filters of available_phone_numbers.
var filters = []string{"phone_number][starts_with", "phone_number][ends_with", "phone_number][contains", "locality", "administrative_area",
	"country_code",
	"national_destination_code", "rate_center", "phone_number_type", "features][", "limit", "best_effort", "quickship", "reservable",
	"exclude_held_numbers"}

func (s *Server) available(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	get := func(name string) string { return q.Get("filter[" + name + "]") }
	for name := range q {
		if inner := strings.TrimSuffix(strings.TrimPrefix(name, "filter["), "]"); !slices.Contains(filters, inner) {
			s.recordViolation("filter %s", name)
		}
	}
	code := map[string]string{"US": "+1", "GB": "+44"}[get("country_code")]
	if code == "" {
		WriteError(w, 400, "10015", "Bad Request", "There is no coverage in this country.")
		return
	}
	limit, _ := strconv.Atoi(get("limit"))
	all := []any{}
	for _, n := range s.Stock {
		rest, ok := strings.CutPrefix(n, code)
		area := get("national_destination_code")
		rest, begins := strings.CutPrefix(rest, area)
		fits := ok && begins && strings.HasPrefix(rest, get("phone_number][starts_with")) &&
			strings.Contains(rest, get("phone_number][contains"))
		if kind := get("phone_number_type"); fits && (kind == "" || kind == "local") && len(all) < limit &&
			!slices.Contains(q["filter[features][]"], "fax") {
			all = append(all, availableNumber(n, get("country_code")))
		}
	}
	meta := map[string]int{"total_results": len(all), "best_effort_results": 0}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": all, "meta": meta, "metadata": meta})
}

func availableNumber(n, country string) map[string]any {
	return map[string]any{"record_type": "available_phone_number", "phone_number": n, "vanity_format": nil, "best_effort": false,
		"quickship":  true,
		"reservable": true, "cost_information": map[string]string{"upfront_cost": "1.00000", "monthly_cost": "1.50000", "currency": "USD"},
		"features": []map[string]string{{"name": "voice"}, {"name": "sms"}, {"name": "emergency"}, {"name": "local_calling"}},
		"region_information": []map[string]string{{"region_type": "country_code", "region_name": country},
			{"region_type": "state", "region_name": "DC"}, {"region_type": "rate_center", "region_name": "WSHNGTNZN1"}}}
}

func (o *Order) response() map[string]any {
	return map[string]any{"id": o.ID, "record_type": "number_order", "phone_numbers_count": 1, "connection_id": o.Connection,
		"status":             o.Status,
		"customer_reference": o.Reference, "requirements_met": o.RequirementsMet, "sub_number_orders_ids": []string{"sub-" + o.ID},
		"created_at": "2026-01-01T00:00:00.000000Z",
		"phone_numbers": []any{map[string]any{"id": "n-" + o.ID, "record_type": "number_order_phone_number", "phone_number": o.Number,
			"status": o.Status, "requirements_met": o.RequirementsMet, "regulatory_requirements": []any{}}}}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all := []any{}
	for _, o := range s.Orders {
		if o.Reference == r.URL.Query().Get("filter[customer_reference]") {
			all = append(all, o.response())
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": all, "meta": map[string]int{"page_number": 1, "page_size": 20, "total_pages": 1,
		"total_results": len(all)}})
}

func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Numbers []struct {
			Number string `json:"phone_number"`
		} `json:"phone_numbers"`
		Reference  string `json:"customer_reference"`
		Connection string `json:"connection_id"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil || len(body.Numbers) != 1 {
		s.recordViolation("order: %v, %d numbers", err, len(body.Numbers))
		WriteError(w, 422, "10004", "Missing required parameter", "phone_numbers")
		return
	}
	n := body.Numbers[0].Number
	i := slices.Index(s.Stock, n)
	if i < 0 {
		WriteError(w, 422, "85001", "Number not available", n+" is not available.")
		return
	}
	s.Stock = slices.Delete(s.Stock, i, i+1)
	o := &Order{ID: fmt.Sprintf("order-%d", len(s.Orders)+1), Number: n, Status: s.Status, Reference: body.Reference,
		Connection: body.Connection, RequirementsMet: !s.RequireDocuments}
	s.Orders = append(s.Orders, o)
	s.Complete(o)
	_ = json.NewEncoder(w).Encode(map[string]any{"data": o.response()})
}

// Reference returns the customer reference in the body of an order request.
func Reference(r *http.Request) string {
	var body struct {
		Reference string `json:"customer_reference"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body.Reference
}

// Complete adds the number of a successful order to the account.
func (s *Server) Complete(o *Order) {
	if o.Status == "success" {
		s.Owned["id-"+o.ID] = o.Number
	}
}

func (s *Server) numbers(w http.ResponseWriter, r *http.Request) {
	wanted := r.URL.Query().Get("filter[phone_number]")
	if strings.Trim(wanted, "0123456789") != "" {
		s.recordViolation("filter[phone_number]=%s, which finds nothing", wanted)
	}
	all := []any{}
	for id, n := range s.Owned {
		if strings.Contains(n, wanted) {
			all = append(all, map[string]any{"id": id, "record_type": "phone_number", "phone_number": n, "status": "active"})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": all, "meta": map[string]int{"total_results": len(all)}})
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	n, ok := s.Owned[id]
	if !ok {
		WriteError(w, 404, "10005", "Resource not found", "The requested resource or URL could not be found.")
		return
	}
	delete(s.Owned, id)
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"id": id, "record_type": "phone_number", "phone_number": n,
		"status": "deleted"}})
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	for _, o := range s.Orders {
		if "sub-"+o.ID == r.PathValue("id") && o.Status == "pending" {
			o.Status = "failure"
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"id": r.PathValue("id"), "status": "cancelled"}})
			return
		}
	}
	WriteError(w, 404, "10005", "Resource not found", "The requested resource or URL could not be found.")
}
