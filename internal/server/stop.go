package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/cluster"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// Stop refuses new calls, waits up to --drain for calls in progress, and closes all listeners, jobs and services. Further calls do nothing.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.draining.Store(true)
		if s.sip != nil {
			s.sip.Drain()
		}
		ctx, cancel := context.WithTimeout(s.mayDrain, s.Platform.config.DrainTime)
		defer cancel()
		if s.switcher != nil {
			s.switcher.Drain(ctx)
		}
		s.settle()
		ctx, cancel = context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		s.closers.close(ctx, s.Platform.log)
		s.cancel()
		s.background.Wait()
		s.leaveNodes(ctx)
		s.Platform.Close()
	})
}

// Alive returns nil if signalling and the switch do their work before the context ends. A database that does not answer is no reason for a
// restart, which would cut calls and not cure it: /ready tells it.
func (s *Server) Alive(ctx context.Context) error {
	if err := s.sip.Alive(ctx); err != nil {
		return err
	}
	counted := make(chan struct{})
	go func() { s.switcher.Active(); close(counted) }()
	select {
	case <-counted:
		return nil
	case <-ctx.Done():
		return errors.New("the switch does not answer")
	}
}

// StopTime returns how long Stop takes at most.
func (s *Server) StopTime() time.Duration { return s.Platform.config.DrainTime + 2*shutdownTime }

// Calls returns the number of calls in progress.
func (s *Server) Calls() int {
	if s.switcher == nil {
		return 0
	}
	return s.switcher.Active()
}

// EndCalls ends the wait of Stop for calls in progress, and returns their number. Stop then hangs up all of them but emergency calls.
func (s *Server) EndCalls() int {
	n := s.Calls()
	s.endDrain()
	return n
}

// settleTime limits the wait for the answers to the last BYEs and CANCELs. It covers a few retransmissions. endedSettleTime is the limit
// after EndCalls; it covers none.
const (
	settleTime      = 4 * time.Second
	endedSettleTime = 400 * time.Millisecond
)

// settle waits until the last BYEs and CANCELs are answered, at most settleTime.
func (s *Server) settle() {
	if s.sip == nil {
		return
	}
	limit := settleTime
	if s.mayDrain.Err() != nil {
		limit = endedSettleTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.sip.WaitForDialogs(ctx)
}

// shutdownTime limits the wait for HTTP requests and jobs in progress.
const shutdownTime = 10 * time.Second

// closers is a stack of stop functions. Each start step pushes its own, so that what started last stops first. The zero value is empty and
// ready.
type closers struct {
	mu  sync.Mutex // guards all
	all []closer
}

type closer struct {
	name string
	stop func(ctx context.Context)
}

// push adds a stop function. The name appears in the log.
func (c *closers) push(name string, stop func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, closer{name, stop})
}

// close calls all stop functions, last in first out, and empties the stack. They share the deadline of the context.
func (c *closers) close(ctx context.Context, log *slog.Logger) {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		began := time.Now()
		all[i].stop(ctx)
		log.Debug("stopped", "part", all[i].name, "took", time.Since(began))
	}
}

// Several nodes on one PostgreSQL database: membership, and what is done with the work of a node that is lost.

// joinNodes makes this node a serving one, and renews its lease until the server has stopped.
func (s *Server) joinNodes(ctx context.Context) error {
	if err := s.Platform.members.Join(ctx); err != nil {
		return err
	}
	s.run(func() { s.Platform.members.Run(ctx) })
	return nil
}

// leaveNodes ends the membership. If other nodes serve, the registrations over connections of this one end.
func (s *Server) leaveNodes(ctx context.Context) {
	p := s.Platform
	var err error
	if p.members.HasPeers() {
		err = p.devices.DropNode(ctx, p.node)
	}
	if err := errors.Join(err, p.members.Leave(ctx)); err != nil {
		p.log.Warn("the node did not leave in order; other nodes take over when its lease is over", "err", err)
	}
}

// nodeWork implements cluster.Work.
type nodeWork struct{ *Platform }

// RemoveFile deletes a file or folder of this node. The folder of an organisation has synthesised texts beside it.
func (p nodeWork) RemoveFile(name string) error {
	err := p.files.DeleteHere(name)
	if !strings.Contains(name, "/") {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.config.Data, "speech", name)))
	}
	return err
}

// CloseLost closes what a lost node left: callers in queues, calls, connections of phones, SMPP connections and jobs.
func (p nodeWork) CloseLost(ctx context.Context, l cluster.Lost) error {
	return p.closeWork(ctx, l.Node, l.Alive, l.Guard)
}

// closeWork closes what a node left that was last known to be alive at a moment. Each change runs under guard.
func (p *Platform) closeWork(ctx context.Context, node string, alive time.Time,
	guard func(context.Context, func(context.Context, db.Querier) error) error) error {
	if err := p.queues.DropNode(ctx, node, guard); err != nil {
		return err
	}
	closed, err := p.calls.CloseLost(ctx, node, alive, guard)
	if closed > 0 {
		p.log.Warn("calls of a lost node closed", "node", node, "closed", closed)
	}
	if err != nil {
		return err
	}
	return guard(ctx, func(ctx context.Context, tx db.Querier) error {
		return errors.Join(p.devices.DropNode(ctx, node), p.smppApps.Recover(ctx, node, alive), job.GiveBack(ctx, tx, node))
	})
}

// closeFormer closes what the node held that had this data folder before the database was copied. Nothing is sent: the original may
// still carry its calls.
func (s *Server) closeFormer(ctx context.Context) error {
	p := s.Platform
	former := p.copied.Node.Former
	if former == "" {
		return nil
	}
	if err := p.closeWork(ctx, former, p.lastAlive(), p.db.TxContext); err != nil {
		return err
	}
	return errors.Join(p.recordings.Adopt(ctx, former), p.voicemail.Adopt(ctx, former))
}

// Returned hangs up the calls of this node that another one has closed because the lease was over.
func (p nodeWork) Returned(ctx context.Context) {
	if p.switcher == nil {
		return
	}
	ended, err := p.calls.EndedOf(ctx, p.switcher.CallIDs())
	if err != nil {
		p.log.Error("calls that other nodes closed are not ended", "err", err)
		return
	}
	p.switcher.HangUp(ended)
}
