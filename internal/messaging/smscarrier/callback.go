package smscarrier

import (
	"context"
	"errors"
	"io"
	"net/http"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// maxCallbackBody bounds the body of a callback.
const maxCallbackBody = 256 << 10

// Mount registers the callback URLs of providers.
func (s *Service) Mount(mux *http.ServeMux) {
	mux.HandleFunc("POST "+CallbackPath+"{token}", s.callback)
}

// callback handles a request from a provider. The response is sent after the commit, because providers repeat
// unacknowledged requests. A repeated request has no effect.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallbackBody))
	if err != nil {
		http.Error(w, "the body cannot be read, or has more than 256 kB", http.StatusRequestEntityTooLarge)
		return
	}
	status, err := s.handleCallback(r, raw)
	if err != nil && status >= 500 {
		s.cfg.Log.Error("callback of an SMS carrier failed", "err", err)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case status >= 500:
		http.Error(w, "try again", status)
	default:
		http.Error(w, errorText(err), status)
	}
}

// handleCallback processes a callback and returns the response status.
func (s *Service) handleCallback(r *http.Request, raw []byte) (status int, err error) {
	ctx := r.Context()
	c, err := s.byToken(ctx, s.cfg.DB.Read(ctx), r.PathValue("token"))
	p, _ := providerOf(c.Provider)
	switch {
	case db.IsNone(err), err == nil && (!c.Enabled || !p.hasCallback):
		return http.StatusNotFound, errors.New("no such address")
	case err != nil:
		return http.StatusServiceUnavailable, err
	}
	l, err := s.openClient(c)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	events, err := l.adapter.(CallbackReceiver).ParseCallback(r, raw)
	switch {
	case errors.Is(err, ErrSignature):
		s.cfg.Log.Warn("callback refused", "org", c.org, "carrier", c.ID, "err", err)
		return http.StatusForbidden, ErrSignature
	case err != nil:
		return http.StatusBadRequest, err
	}
	if err := s.storeEvents(ctx, c, events); err != nil {
		return http.StatusServiceUnavailable, err
	}
	return http.StatusNoContent, nil
}

// storeEvents stores the events of a carrier one by one. After a failure the carrier repeats the request, and the
// events that are stored already are recognised.
func (s *Service) storeEvents(ctx context.Context, c Carrier, events []Event) error {
	for _, e := range events {
		if e.Receipt != nil && e.Receipt.ID != "" && e.Receipt.Result.Status != "" {
			if err := s.cfg.Messages.Receipt(ctx, c.org, c.ID, e.Receipt.ID, e.Receipt.Result); err != nil {
				return err
			}
		}
		if e.Message != nil {
			if err := s.receiveMessage(ctx, c, *e.Message); err != nil {
				return err
			}
		}
	}
	return nil
}

// errForeignNumber means that a message is for a number that the organisation does not have.
var errForeignNumber = errors.New("not a number of the organisation")

// receiveMessage passes a message to package sms. A message for a number that the organisation does not have is
// dropped, because the carrier would repeat it forever.
func (s *Service) receiveMessage(ctx context.Context, c Carrier, in Incoming) error {
	if octets, ok := damagedOctets(in.Body); ok {
		in.Media = append(in.Media, sms.Undecoded(octets, "application/octet-stream"))
		in.Body = ""
	} else if !sms.IsReadable(in.Body) {
		in.Media = append(in.Media, sms.Undecoded([]byte(in.Body), "application/octet-stream"))
		in.Body = ""
	}
	from, err := s.senderAddress(ctx, c.org, in.From)
	if err != nil {
		return err
	}
	to, err := s.ownRecipient(ctx, c.org, in)
	if errors.Is(err, errForeignNumber) {
		s.cfg.Log.Warn("message dropped: not a number of the organisation", "org", c.org, "carrier", c.ID)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.cfg.Messages.Receive(ctx, sms.Incoming{Org: c.org, From: from, To: to, Body: in.Body, Media: in.Media, Carrier: c.ID,
		Reference: in.ID})
	var refused *op.Error
	if errors.As(err, &refused) {
		s.cfg.Log.Warn("message of an SMS carrier dropped", "org", c.org, "carrier", c.ID, "why", refused.Code)
		return nil
	}
	return err
}
