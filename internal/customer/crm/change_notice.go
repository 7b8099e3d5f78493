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

// Change notices: HTTP requests by which a system reports that its list has changed. The address contains a secret of
// the connection. The body is ignored.

const (
	noticeKind = "crm.notice"
	// noticeDelay is the time for which notices are collected. The list is read once for all notices within it.
	noticeDelay = 2 * time.Second
)

// noticePath returns the path for change notices of a connection.
func (s *Service) noticePath(org, id string) string {
	return "/notices/" + org + "/" + id + "/" + s.noticeSecret(org, id)
}

func (s *Service) noticeSecret(org, id string) string {
	m := hmac.New(sha256.New, s.cfg.Seal.Key("notices of connections"))
	m.Write([]byte(org + "|" + id))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:18])
}

// Notice schedules a read of a list because its system reported a change. It returns false if the secret is wrong.
// Notices within one noticeDelay enqueue one job.
func (s *Service) Notice(ctx context.Context, org, id, secret string) (bool, error) {
	if !hmac.Equal([]byte(secret), []byte(s.noticeSecret(org, id))) {
		return false, nil
	}
	round := s.cfg.Clock.Now().Truncate(noticeDelay).Add(noticeDelay)
	if !s.firstInRound(id, round) {
		return true, nil
	}
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		c, err := getConnection(ctx, tx, org, id)
		if db.IsNone(err) {
			return nil // disconnected
		}
		if err != nil {
			return err
		}
		return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: "crm|" + id, Kind: noticeKind,
			Args: connectionArgs{id, c.updatedAt}, RunAt: round, UniqueKey: fmt.Sprintf("%s %s %d", noticeKind, id, round.Unix())})
	})
	if err != nil {
		return true, fmt.Errorf("process change notice of connection %s: %w", id, err)
	}
	return true, nil
}

// firstInRound reports whether this is the first notice for the connection in a round.
func (s *Service) firstInRound(id string, round time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noticeRounds[id].Equal(round) {
		return false
	}
	s.noticeRounds[id] = round
	return true
}

// readAfterNotice reads a list once, in addition to its periodic reads.
func (s *Service) readAfterNotice(ctx context.Context, j job.Job) error {
	err := s.readList(ctx, j)
	var again *job.Retry
	if errors.As(err, &again) && !errors.Is(err, errAlreadyReading) {
		return nil // read, or tried; the periodic read continues
	}
	return err
}
