package trunk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/egress"
	"soniq/internal/telephony/number"
)

// TelnyxURL is the base address of the Telnyx API.
const TelnyxURL = "https://api.telnyx.com/v2"

// TelnyxLimits bounds the time and size of requests to the Telnyx API.
var TelnyxLimits = egress.Limits{Connect: 5 * time.Second, Total: 20 * time.Second, Body: 2 << 20, Idle: 4}

// Telnyx is the number market of a Telnyx account, over API v2. It is safe for concurrent use.
type Telnyx struct {
	number.Credentials
	http *http.Client
}

// NewTelnyx returns the market of an account.
func NewTelnyx(client *http.Client, c number.Credentials) *Telnyx {
	c.URL = strings.TrimRight(c.URL, "/")
	return &Telnyx{c, client}
}

// telnyxRefusal is a permanent error: a retry would give the same result.
type telnyxRefusal struct {
	status int
	text   string
}

// Error returns the status and the reason that Telnyx gave.
func (r *telnyxRefusal) Error() string {
	return fmt.Sprintf("the provider answers %d: %s", r.status, r.text)
}

// request sends a request and decodes the response into a value.
func (t *Telnyx) request(ctx context.Context, method, path string, query url.Values, body, to any) error {
	address := t.URL + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+t.Key)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := t.http.Do(r)
	if err != nil {
		return fmt.Errorf("request to Telnyx: %w", err)
	}
	defer answer.Body.Close()
	if err := responseError(answer); err != nil {
		return err
	}
	if err := json.NewDecoder(answer.Body).Decode(to); err != nil {
		return fmt.Errorf("read the answer of Telnyx: %w", err)
	}
	return nil
}

// responseError returns the error for a response; nil for 2xx.
func responseError(a *http.Response) error {
	if a.StatusCode/100 == 2 {
		return nil
	}
	text := errorText(a.Body)
	switch {
	case a.StatusCode == http.StatusUnauthorized, a.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %s", number.ErrAuth, text)
	case a.StatusCode == http.StatusTooManyRequests:
		return number.ErrBusy
	case a.StatusCode/100 == 4 && a.StatusCode != http.StatusRequestTimeout:
		return &telnyxRefusal{a.StatusCode, text}
	}
	return fmt.Errorf("the provider answers %d: %s", a.StatusCode, text)
}

// errorText returns the first error of a response body as text, of at most 300 characters.
func errorText(body io.Reader) string {
	var said struct {
		Errors []struct{ Code, Title, Detail string }
	}
	if err := json.NewDecoder(body).Decode(&said); err != nil || len(said.Errors) == 0 {
		return "no reason given"
	}
	e := said.Errors[0]
	text := strings.TrimSpace(e.Title + ": " + e.Detail + " (" + e.Code + ")")
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300])
	}
	return text
}

// telnyxOrder is a number order in the Telnyx API.
type telnyxOrder struct {
	ID              string
	Status          string // pending, success, failure
	Reference       string `json:"customer_reference"`
	RequirementsMet *bool  `json:"requirements_met"`
	Numbers         []struct {
		Number string `json:"phone_number"`
		Status string
		Met    *bool `json:"requirements_met"`
	} `json:"phone_numbers"`
	Parts []string `json:"sub_number_orders_ids"`
}

// Intervals at which the state of an order is polled.
const (
	telnyxPollInterval      = 5 * time.Second
	telnyxDocumentsInterval = 10 * time.Minute // documents have to be sent by a person
)

// orderState returns the state of the order for a number.
func (o telnyxOrder) orderState(e164 string) (number.OrderStatus, error) {
	status, met := o.Status, o.RequirementsMet
	for _, n := range o.Numbers {
		if n.Number == e164 && n.Status != "" {
			status = n.Status
			if n.Met != nil {
				met = n.Met
			}
		}
	}
	switch {
	case status == "success":
		return number.OrderStatus{Active: true}, nil
	case status == "failure":
		return number.OrderStatus{}, fmt.Errorf("%w: the Telnyx order failed", number.ErrUnavailable)
	case met != nil && !*met:
		return number.OrderStatus{After: telnyxDocumentsInterval,
			Detail: "Telnyx waits for the documents that the country asks for; give them to it in its portal"}, nil
	}
	return number.OrderStatus{After: telnyxPollInterval}, nil
}

// findOrder looks for the order with our reference.
func (t *Telnyx) findOrder(ctx context.Context, d number.OrderRequest) (o telnyxOrder, ok bool, err error) {
	var page struct{ Data []telnyxOrder }
	if err := t.request(ctx, http.MethodGet, "/number_orders", url.Values{"filter[customer_reference]": {d.Ref}}, nil, &page); err != nil {
		return o, false, err
	}
	i := slices.IndexFunc(page.Data, func(o telnyxOrder) bool { return o.Reference == d.Ref })
	if i < 0 {
		return o, false, nil
	}
	return page.Data[i], true, nil
}

// Order orders a number once, however often it is called. The order has our reference, and an existing order with it
// is looked up first.
func (t *Telnyx) Order(ctx context.Context, d number.OrderRequest) (number.OrderStatus, error) {
	o, ok, err := t.findOrder(ctx, d)
	if err != nil {
		return number.OrderStatus{}, err
	}
	if ok {
		return o.orderState(d.Number)
	}
	offer := t.lookupOffer(ctx, d)
	done, err := t.createOrder(ctx, d)
	var no *telnyxRefusal
	if errors.As(err, &no) {
		// it may be refused because an earlier order, to which the response was lost, has succeeded
		if o, ok, again := t.findOrder(ctx, d); again == nil && ok {
			return o.orderState(d.Number)
		}
		return number.OrderStatus{}, fmt.Errorf("%w: %s", number.ErrUnavailable, no.text)
	}
	if err != nil {
		return number.OrderStatus{}, err
	}
	state, err := done.orderState(d.Number)
	state.MonthlyCost, state.Capabilities = offer.MonthlyCost, offer.Capabilities
	return state, err
}

func (t *Telnyx) createOrder(ctx context.Context, d number.OrderRequest) (telnyxOrder, error) {
	body := map[string]any{"phone_numbers": []map[string]string{{"phone_number": d.Number}}, "customer_reference": d.Ref}
	if t.Connection != "" {
		body["connection_id"] = t.Connection
	}
	var made struct{ Data telnyxOrder }
	err := t.request(ctx, http.MethodPost, "/number_orders", nil, body, &made)
	return made.Data, err
}

// Release deletes a number from the account, or cancels its order.
func (t *Telnyx) Release(ctx context.Context, d number.OrderRequest) error {
	var page struct {
		Data []struct {
			ID, Status string
			Number     string `json:"phone_number"`
		}
	}
	digits := strings.TrimPrefix(d.Number, "+") // the filter finds nothing with a plus sign
	if err := t.request(ctx, http.MethodGet, "/phone_numbers", url.Values{"filter[phone_number]": {digits}}, nil, &page); err != nil {
		return err
	}
	for _, n := range page.Data {
		if n.Number == d.Number && n.Status != "deleted" {
			return ignoreNotFound(t.request(ctx, http.MethodDelete, "/phone_numbers/"+url.PathEscape(n.ID), nil, nil, &struct{}{}))
		}
	}
	o, ok, err := t.findOrder(ctx, d)
	if err != nil || !ok {
		return err
	}
	state, err := o.orderState(d.Number)
	if err != nil {
		return nil // the order failed; there is no number to release
	}
	if state.Active {
		return errors.New("the provider does not list the number yet")
	}
	for _, part := range o.Parts {
		if err := ignoreNotFound(t.request(ctx, http.MethodPatch, "/sub_number_orders/"+url.PathEscape(part)+"/cancel", nil, nil,
			&struct{}{})); err != nil {
			return err
		}
	}
	return nil
}

// ignoreNotFound returns nil if the object to delete does not exist.
func ignoreNotFound(err error) error {
	var no *telnyxRefusal
	if errors.As(err, &no) && (no.status == http.StatusNotFound || no.status == http.StatusGone) {
		return nil
	}
	return err
}
