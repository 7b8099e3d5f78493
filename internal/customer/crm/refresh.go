package crm

import (
	"context"
	"errors"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// Queue is the name of the job queue of connections.
const Queue = "crm"

const (
	readKind   = "crm.read"
	forgetKind = "crm.forget"
	syncKind   = "crm.sync"
	revokeKind = "crm.revoke"
	readTime   = 15 * time.Minute
	readAgain  = 5 * time.Minute // after a failed read
	readWait   = 5 * time.Second // while another job reads the same list
)

// errAlreadyReading means that another job reads the list.
var errReading = errors.New("another job reads the list")

// RegisterJobs registers the job handlers of connections.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(readKind, s.readList)
	r.Handle(noticeKind, s.readNoticed)
	r.Handle(forgetKind, s.forget)
	r.Handle(syncKind, s.sync)
	r.Handle(revokeKind, s.revoke)
}

// Options returns the options of the job runner.
func Options() job.Options { return job.Options{Workers: 8, PerLane: 2, Timeout: readTime} }

type connectionArgs struct {
	ID      string  `json:"id"`
	Version db.Time `json:"version"` // updated_at of the connection; a job of an older version ends
}

// enqueueRead enqueues a read of a list. The job repeats itself.
func (s *Service) readSoon(ctx context.Context, tx db.Querier, c Connection) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: c.org, Queue: Queue, Lane: "crm|" + c.ID, Kind: readKind, Args: connectionArgs{c.ID, c.updatedAt}})
}

func (s *Service) forgetSoon(ctx context.Context, tx db.Querier, c Connection) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: c.org, Queue: Queue, Lane: "crm|" + c.ID, Kind: forgetKind, Args: connectionArgs{ID: c.ID}})
}

// readList reads a list into the phone index and reschedules itself for the next read.
func (s *Service) readList(ctx context.Context, j job.Job) error {
	var args connectionArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	c, err := connection(ctx, s.DB.Read(ctx), j.Org, args.ID)
	if db.IsNone(err) || err == nil && (!c.enabled || c.updatedAt.UnixMilli() != args.Version.UnixMilli()) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.open(&c); err != nil {
		return err
	}
	l, err := s.line(c)
	if err != nil {
		return errors.Join(err, job.ErrDead)
	}
	d, ok := l.adapter.(Directory)
	if !ok {
		return nil
	}
	if !s.take(c.ID) {
		return &job.Retry{After: readWait, NotCounted: true, Cause: errReading}
	}
	defer s.leave(c.ID)
	return s.read(ctx, c, d)
}

// readOnce reads a list once and returns the retry for the next read.
func (s *Service) read(ctx context.Context, c Connection, d Directory) error {
	n, mark, why := s.copyList(ctx, c, d)
	again, at := d.Every(), db.At(s.Now())
	if why != nil {
		n, again, at, mark = -1, min(again, readAgain), db.Time{}, c.mark
	}
	said := words(why)
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { return refreshed(ctx, tx, c, n, at, said, mark) })
	if why == nil {
		why = errors.New("read")
	}
	return &job.Retry{After: again, NotCounted: true, Cause: why}
}

// lockList prevents two concurrent reads of a list. It returns false if one is running.
func (s *Service) take(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading[id] {
		return false
	}
	s.reading[id] = true
	return true
}

func (s *Service) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reading, id)
}

// copyList reads a list, or its changes, into the index. It returns the number of entries and the next sync token.
func (s *Service) copyList(ctx context.Context, c Connection, d Directory) (people int, mark string, err error) {
	round, err := s.Contacts.NewRound(ctx, c.org, c.ID)
	if err != nil {
		return 0, "", err
	}
	f, ok := d.(Follower)
	if !ok {
		if err := d.All(ctx, round.Add); err != nil {
			return 0, "", err
		}
		people, err = round.Finish(ctx)
		return people, "", err
	}
	whole := false
	mark, err = f.Follow(ctx, c.mark, Changes{Put: round.Add, Gone: round.Remove, Whole: func(context.Context) error { whole = true; return nil }})
	if err != nil {
		return 0, "", err
	}
	if whole {
		people, err = round.Finish(ctx)
		return people, mark, err
	}
	people, err = round.Leave(ctx)
	return people, mark, err
}

// forget deletes the entries of a connection that was deleted.
func (s *Service) forget(ctx context.Context, j job.Job) error {
	var args connectionArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	if _, err := connection(ctx, s.DB.Read(ctx), j.Org, args.ID); !db.IsNone(err) {
		return err
	}
	return s.Contacts.Forget(ctx, j.Org, args.ID)
}
