package server

import (
	"context"
	"time"
)

// Stop refuses new calls, waits up to --drain for calls in progress, and closes all listeners, jobs and services. Further calls do nothing.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.draining.Store(true)
		if s.sip != nil {
			s.sip.Drain()
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.Platform.config.DrainTime)
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
		s.Platform.Close()
	})
}

// settleTime limits the wait for the answers to the last BYEs and CANCELs. It covers a few retransmissions.
const settleTime = 4 * time.Second

// settle waits until the last BYEs and CANCELs are answered, at most settleTime.
func (s *Server) settle() {
	if s.sip == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	s.sip.WaitForDialogs(ctx)
}

// shutdownTime limits the wait for HTTP requests and jobs in progress.
const shutdownTime = 10 * time.Second
