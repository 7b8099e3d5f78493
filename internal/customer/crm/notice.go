package crm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// This file takes notices: requests by which a system tells that its list has changed. Their address is a secret of the connection;
// what they say beside is not looked at.

const (
	noticeKind = "crm.notice"
	// noticeRest is how long notices are gathered: the list is read once for all that come within it.
	noticeRest = 2 * time.Second
)

// noticePath is where a connection is told of changes.
func (s *Service) noticePath(org, id string) string {
	return "/notices/" + org + "/" + id + "/" + s.noticeSecret(org, id)
}

func (s *Service) noticeSecret(org, id string) string {
	m := hmac.New(sha256.New, s.Seal.Key("notices of connections"))
	m.Write([]byte(org + "|" + id))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:18])
}

// Notice has a list read soon, because its system says that it has changed; false where the secret is wrong. Of many notices at once
// one is written down.
func (s *Service) Notice(ctx context.Context, org, id, secret string) (bool, error) {
	if !hmac.Equal([]byte(secret), []byte(s.noticeSecret(org, id))) {
		return false, nil
	}
	round := s.Now().Truncate(noticeRest).Add(noticeRest)
	if !s.gather(id, round) {
		return true, nil
	}
	err := s.DB.Tx(ctx, func(tx db.Querier) error {
		c, err := connection(ctx, tx, org, id)
		if db.IsNone(err) {
			return nil // disconnected
		}
		if err != nil {
			return err
		}
		return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: "crm|" + id, Kind: noticeKind, Args: connectionArgs{id, c.updatedAt},
			RunAt: round, UniqueKey: fmt.Sprintf("%s %s %d", noticeKind, id, round.Unix())})
	})
	if err != nil {
		return true, fmt.Errorf("take notice of connection %s: %w", id, err)
	}
	return true, nil
}

// gather reports whether nobody has come for a round yet.
func (s *Service) gather(id string, round time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noticed[id].Equal(round) {
		return false
	}
	s.noticed[id] = round
	return true
}

// readNoticed reads a list once, whenever else it is read.
func (s *Service) readNoticed(ctx context.Context, j job.Job) error {
	err := s.readList(ctx, j)
	var again *job.Retry
	if errors.As(err, &again) && !errors.Is(err, errReading) {
		return nil // read, or tried: the reading that repeats itself goes on
	}
	return err
}
