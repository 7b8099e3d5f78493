package crm

import (
	"context"
	"errors"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// Queue is the name of the job queue of connections.
const Queue = "crm"

const (
	readKind       = "crm.read"
	forgetKind     = "crm.forget"
	syncKind       = "crm.sync"
	revokeKind     = "crm.revoke"
	readTimeout    = 15 * time.Minute
	readRetryDelay = 5 * time.Minute // after a failed read
	readBusyDelay  = 5 * time.Second // while another job reads the same list
)

// errAlreadyReading means that another job reads the list.
var errAlreadyReading = errors.New("another job reads the list")

// RegisterJobs registers the job handlers of connections.
func (s *Service) RegisterJobs(r *job.Runner) {
	r.Handle(readKind, s.readList)
	r.Handle(noticeKind, s.readAfterNotice)
	r.Handle(forgetKind, s.forget)
	r.Handle(syncKind, s.runSync)
	r.Handle(revokeKind, s.revoke)
}

// Options returns the options of the job runner.
func Options() job.Options { return job.Options{Workers: 8, PerLane: 2, Timeout: readTimeout} }

type connectionArgs struct {
	ID      string  `json:"id"`
	Version db.Time `json:"version"` // updated_at of the connection; a job of an older version ends
}

// enqueueRead enqueues a read of a list. The job repeats itself.
func (s *Service) enqueueRead(ctx context.Context, tx db.Querier, c Connection) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: c.org, Queue: Queue, Lane: "crm|" + c.ID, Kind: readKind,
		Args: connectionArgs{c.ID, c.updatedAt}})
}

func (s *Service) enqueueForget(ctx context.Context, tx db.Querier, c Connection) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: c.org, Queue: Queue, Lane: "crm|" + c.ID, Kind: forgetKind,
		Args: connectionArgs{ID: c.ID}})
}

// readList reads a list into the phone index and reschedules itself for the next read.
func (s *Service) readList(ctx context.Context, j job.Job) error {
	var args connectionArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	c, err := getConnection(ctx, s.cfg.DB.Read(ctx), j.Org, args.ID)
	if db.IsNone(err) || err == nil && (!c.enabled || c.updatedAt.UnixMilli() != args.Version.UnixMilli()) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.unsealSettings(&c); err != nil {
		return err
	}
	l, err := s.clientFor(c)
	if err != nil {
		return errors.Join(err, job.ErrDead)
	}
	d, ok := l.adapter.(adapter.Directory)
	if !ok {
		return nil
	}
	if !s.lockList(c.ID) {
		return &job.Retry{After: readBusyDelay, NotCounted: true, Cause: errAlreadyReading}
	}
	defer s.unlockList(c.ID)
	return s.readOnce(ctx, c, d)
}

// readOnce reads a list once and returns the retry for the next read.
func (s *Service) readOnce(ctx context.Context, c Connection, d adapter.Directory) error {
	n, mark, why := s.copyList(ctx, c, d)
	again, at := d.RefreshInterval(), db.At(s.cfg.Clock.Now())
	if why != nil {
		n, again, at, mark = -1, min(again, readRetryDelay), db.Time{}, c.syncToken
	}
	said := errorText(why)
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error { return saveRefresh(ctx, tx, c, n, at, said, mark) })
	if why == nil {
		why = errors.New("read")
	}
	return &job.Retry{After: again, NotCounted: true, Cause: why}
}

// lockList prevents two concurrent reads of a list. It returns false if one is running.
func (s *Service) lockList(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readingLists[id] {
		return false
	}
	s.readingLists[id] = true
	return true
}

func (s *Service) unlockList(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readingLists, id)
}

// copyList reads a list, or its changes, into the index. It returns the number of entries and the next sync token.
func (s *Service) copyList(ctx context.Context, c Connection, d adapter.Directory) (people int, mark string, err error) {
	round, err := s.cfg.Contacts.NewRound(ctx, c.org, c.ID)
	if err != nil {
		return 0, "", err
	}
	f, ok := d.(adapter.IncrementalSync)
	if !ok {
		if err := d.All(ctx, round.Add); err != nil {
			return 0, "", err
		}
		people, err = round.Finish(ctx)
		return people, "", err
	}
	sink := &roundSink{Round: round}
	mark, err = f.SyncSince(ctx, c.syncToken, sink)
	if err != nil {
		return 0, "", err
	}
	if sink.whole {
		people, err = round.Finish(ctx)
		return people, mark, err
	}
	people, err = round.FinishPartial(ctx)
	return people, mark, err
}

// roundSink copies changes into the index.
type roundSink struct {
	*contact.Round      // has Remove
	whole          bool // a full read
}

// BeginFull implements ChangeSink.
func (s *roundSink) BeginFull(context.Context) error {
	s.whole = true
	return nil
}

// Put implements ChangeSink.
func (s *roundSink) Put(ctx context.Context, r contact.Record) error { return s.Add(ctx, r) }

// forget deletes the entries of a connection that was deleted.
func (s *Service) forget(ctx context.Context, j job.Job) error {
	var args connectionArgs
	if err := j.Bind(&args); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	if _, err := getConnection(ctx, s.cfg.DB.Read(ctx), j.Org, args.ID); !db.IsNone(err) {
		return err
	}
	return s.cfg.Contacts.DeleteEntries(ctx, j.Org, args.ID)
}
